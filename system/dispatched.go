package system

import "context"

// AwaitDispatched returns when everything that is in the log now is in its consume queue and in the index, so that gets and
// queries find it. The context bounds the waiting.
func (s *Store) AwaitDispatched(ctx context.Context) error {
	if err := s.readable(); err != nil {
		return err
	}
	return s.cast.await(ctx, s.log.End())
}
