// Package commitlog is the commit log of a store: segments that follow one another, appended by one writer and read by
// anybody without a lock.
//
//	commitlog/00000000000000000000   records, then a blank record (spec/store.md §2.4)
//	commitlog/00000000001073741824   records up to the end of the log, then zeros
//
// It knows where the log begins and ends, not what a record means: that is package record.
package commitlog
