// Package stats counts what goes in and out, by topic and by topic and group, as tools ask for it (spec/store.md §14.2,
// spec/remoting.md §17.6). Counting a known item is a lookup and atomic adds; an actor makes new items and takes the samples.
//
//	every 10 s → 7 samples, a minute     every 10 min → 7, an hour     every hour → 25, a day
//
// A window shows the difference between its newest and its oldest sample.
package stats
