package system

import "context"

// AwaitDispatched returns when everything that is in the log now is in its consume queue and in the index, so that gets and
// queries find it. The context bounds the waiting.
func (s *Store) AwaitDispatched(ctx context.Context) error {
	if err := s.readable(); err != nil {
		return err
	}
	return s.builtToEnd(ctx)
}

// builtToEnd waits until everything that has been appended is in queues and index.
func (s *Store) builtToEnd(ctx context.Context) error {
	end, err := s.commit(ctx)
	if err != nil {
		return err
	}
	return s.cast.await(ctx, end)
}
