// Package memfs is a simulated disk (vfs.Disk) for tests. It keeps, beside what programs see, what the disk would hold
// after a power cut, and every call can be made to fail, to stall, or to run out of room.
//
// Three ends of a store are told apart:
//
//   - Clone is kill -9: all that was written is there, synced or not.
//   - Crash is a power cut: synced data is there; of the rest any part, chosen by the seed.
//   - Inject makes single operations fail and leaves the rest to the program.
//
// Digest tells which of many ends are the same.
//
// The model of a power cut. A page is 4 KiB, a sector 512 bytes.
//
//   - Data. Each page that differs from the last DataSync is old or new, and of each file at most one such page is torn:
//     every one of its sectors is old or new. Changes between two syncs leave no versions between.
//   - Length. A length that was not synced is old or new; what a new length adds without its page reads as zeros.
//   - Names. A create, mkdir, remove or rename that no SyncDir covered has happened or not, each as a whole and independently,
//     except that one that happened takes those before it on the same names with it. A rename is synced by a SyncDir of
//     either folder. MkdirAll is durable when it returns, as the contract says.
//   - Reserved space (Allocate) that lies within the length stays reserved.
//   - A DataSync, SyncTree or StartWriteback that fails by Inject treats pages as the Linux page cache does: they count as clean, a later DataSync
//     succeeds without writing them, and only a program that writes them again (through a mapping: that changes them) gets
//     them to the disk.
//
// In every sixth crash nothing unsynced survives and in every sixth all of it; in between each file draws its own odds.
// What is drawn depends on the seed, the path and the page only, so that a crash can be repeated, and a small change of
// the program leaves the rest of the picture alone.
//
// Limits: a mapping never faults; a MapRead mapping can be written; a file that grew while its shorter beginning is mapped
// can't be mapped as a whole before that mapping ends; hard and symbolic links do not exist; a store through a mapping
// into a hole takes its room at the next DataSync or Populate. "/a" and "a" are the same name.
package memfs
