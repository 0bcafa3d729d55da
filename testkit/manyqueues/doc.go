// Command manyqueues makes a store with many queues as a killed process leaves it, and measures how long the store takes to open, how
// much memory that needs, and how many descriptors and maps; then the same after a clean stop. File sizes and limits are the
// defaults.
//
//	go run ./testkit/manyqueues -dir DIR [-topics 20000] [-queues 5] [-messages 2]
//
// DIR must not exist; it is left behind. Every queue's messages are looked up after opening. The exit status is 1 when one is
// missing, or when opening took longer than -limit or needed more than -memory.
package main
