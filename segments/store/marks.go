package store

import (
	"errors"
	"io/fs"

	"github.com/actormq/actormq/segments/vfs"
)

// Mark says that a part of a store is not to be believed, however sound it reads.
type Mark struct {
	File string `json:"file"` // its path
	From int64  `json:"from"` // what is at this physical offset and behind it is in doubt
	Next string `json:"next"` // what the next start does about it
}

// Marks reads the marks of a store; it changes nothing.
func Marks(disk vfs.Disk, p Params) ([]Mark, error) {
	var marks []Mark
	for _, m := range []struct{ file, next string }{
		{p.UnprovenPath(), "a sync of the log had failed: the next start copies the log from there on to new files, before anything else"},
		{p.UnprovenQueuesPath(), "the next start builds all consume queues again from there on"},
		{p.UnprovenIndexPath(), "a start was interrupted that built the index again: the next one builds it from there on"},
	} {
		from, err := readUnproven(disk, m.file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if from == unsound {
			from, m.next = 0, "a reader had met damage: the next start looks at all consume queues, and builds those again that are not sound"
		}
		marks = append(marks, Mark{File: m.file, From: int64(from), Next: m.next})
	}
	return marks, nil
}
