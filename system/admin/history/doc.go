// Package history remembers for a while what a node has counted, so that whoever looks at it sees what was before. An actor takes
// a sample every two seconds, and how far groups are behind every ten; both are kept for so long that a board can show half an
// hour, and an hour. It reads counters only, as a scrape of the metrics does, and nothing is on the way of a put.
package history
