package system

import (
	"errors"
	"fmt"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/store"
)

// ErrReadOnly: the store was opened for reading only, as nothing may be written to its directory; the cause is wrapped.
var ErrReadOnly = errors.New("the store is open for reading only")

// openToServe opens the files, or, when nothing may be written to them, opens them for reading: recovered in memory, locked,
// unchanged. That is safe where the log can be read: reads promise nothing that is not so already, while a put would be promised
// what a disk has just shown that it does not keep. Any other error keeps the store closed, and so does
// a group: its other members have what is there.
func openToServe(opt Options) (files *store.Store, unwritable, err error) {
	files, err = openFiles(opt, store.Options{})
	if err == nil || opt.Group != nil || !mayServe(err) {
		return files, nil, err
	}
	unwritable = fmt.Errorf("%w: %w", ErrReadOnly, err)
	if files, err = openFiles(opt, store.Options{InMemory: true}); err != nil {
		return nil, nil, errors.Join(unwritable, err)
	}
	return files, unwritable, nil
}

// mayServe tells whether only writing is what kept the store closed.
func mayServe(err error) bool {
	return errors.Is(err, store.ErrUnproven) || errors.Is(err, store.ErrNoAbort) || errors.Is(err, store.ErrNoNote)
}

// sayReadOnly makes the state of a store that was opened for reading only that of one whose disk has failed: puts are refused for good, and
// a stop leaves everything as it is.
func (s *Store) sayReadOnly() {
	if s.readOnly == nil {
		return
	}
	s.failure.set(s.readOnly)
	s.refuseForGood(s.readOnly)
	s.SetFlag(messages.FlagNotWriteable, s.readOnly)
	s.opt.Logger.Error().Err(s.readOnly).Str("dir", s.opt.Dir).
		Msg("the store is open for reading only: mend the disk, or make room, and start again")
}
