// Package epochs keeps, beside a store of a replica group, which leader has written which part of the log: each leader's epoch begins at
// an offset and ends where the next one begins. Two logs of one group have the same bytes below the place that Common finds.
//
// The file, epochs.json in the store's folder, is one of our own: RocketMQ neither reads nor writes it.
package epochs
