package store

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/vfs"
)

// FurtherPath is the marker of a store that has had queues of INNER_MULTI_DISPATCH (light queues mostly): each start builds them again with the others,
// also one that does without the option, as it cuts and drops what is damaged or in doubt, and no later start would know. RocketMQ ignores it.
func (p Params) FurtherPath() string { return path.Join(p.Dir, "furtherqueues") }

// loadFurther finds out whether the store has had such queues: by the marker, or by a light queue, as RocketMQ and earlier versions leave no marker.
func (s *Store) loadFurther() error {
	_, err := s.Disk.Stat(s.Params.FurtherPath())
	if s.furtherNoted = err == nil; err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	s.Params.MultiDispatch = s.Params.MultiDispatch || s.furtherNoted
	s.Queues.Each(func(key messages.QueueKey, _ *consumequeue.Queue) {
		if !s.Params.MultiDispatch && strings.HasPrefix(key.Topic, messages.LMQTopicPrefix) {
			s.Params.MultiDispatch = true
		}
	})
	return nil
}

// noteFurther makes the marker durable before any of these queues goes. Without room for a name the next start with room does it.
func (s *Store) noteFurther() error {
	if s.furtherNoted || !s.Params.MultiDispatch {
		return nil
	}
	err := checkpoint.SetAbort(s.Disk, s.Params.FurtherPath()) // a marker like that one
	switch {
	case errors.Is(err, vfs.ErrNoSpace):
		return nil
	case err != nil:
		return fmt.Errorf("note that there are further queues: %w", err)
	}
	s.furtherNoted = true
	return nil
}
