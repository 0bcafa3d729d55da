// Package broker is what the request handlers of the gateway have in common: who the broker is, its store, its keepers, and
// how their errors are said in the protocol's codes. The handlers live in the packages beside it, one a family of requests.
package broker
