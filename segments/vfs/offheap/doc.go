// Package offheap is memory of a fixed size that the garbage collector does not know: the write buffers of segments
// (spec/store.md §3.8).
package offheap
