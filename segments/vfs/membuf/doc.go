// Package membuf holds the content of one file in memory, for the overlay in segments/vfs and for the simulated disk in
// testkit/memfs. What it adds to a byte slice is that the content can be mapped: Hold hands out a slice that is the
// content itself, and growing never moves bytes that somebody holds.
//
//	head                                tail
//	[ can be held; stays in place    ]  [ what was added while head was held ]
//	0 ........................ size ..  (size may lie in either part)
package membuf
