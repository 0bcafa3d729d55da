// Package frames holds the 111 recorded remoting frames of spec/remoting.md §21 (real 4.9.7 and Go 2.1.2 peers on
// loopback) as test data: the whole frames as bytes, what they decode to, and prose that says what the case shows.
//
//	for _, c := range frames.All() {
//		c.Request.Bytes     // length, header and body as sent
//		c.Request.Header    // its decoded header
//		c.Response          // nil when nothing was answered
//	}
//
// It panics when its own data is damaged; it is for tests only.
package frames
