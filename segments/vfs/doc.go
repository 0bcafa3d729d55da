// Package vfs is the store's only way to the operating system: a small Disk interface with a real form (New), a read-only
// overlay that keeps changes in memory (Overlay), and, in testkit/memfs, a simulated form that can lose what was not
// synced. Everything that the store does to files goes through it, so that each call can be made to fail in a test.
//
// New exists on Linux and, with slower system calls, on darwin and freebsd; the build tag vfsportable takes the slower
// ones on Linux, for tests. One suite of tests (disk_test.go) runs over all forms. Errors are *fs.PathError values that
// name the operation and the path, and carry one of this package's or io/fs's sentinels where a caller can decide on it;
// only the end of a file is the bare io.EOF.
package vfs
