// Package vfs is the store's only way to the operating system: a small Disk interface with a real form (New), a read-only
// overlay that keeps changes in memory (Overlay), and, in testkit/memfs, a simulated form that can lose what was not
// synced. Everything that the store does to files goes through it, so that each call can be made to fail in a test.
package vfs
