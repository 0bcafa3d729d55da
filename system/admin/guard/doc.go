// Package guard decides who may ask the admin port for what is not for everybody: the console, profiles, the log level.
//
//	open    on loopback, without a password: whoever is on the machine. A request must name the loopback interface as its
//	        host, so that no page of the internet reaches it by a name of its own (DNS rebinding)
//	locked  with a password: by a cookie that a login has given, or by the password in each request (HTTP basic)
//	shut    anywhere else: nobody
//
// In every mode a request that changes something must not come from another site's page.
package guard
