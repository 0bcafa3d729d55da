package system

import (
	"context"
	"errors"
	"fmt"
	"path"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

// await waits for the answer of an actor that may be gone once the store is being closed.
func await[T any](ctx context.Context, s *Store, answer *messages.Answer[T]) (T, error) {
	select {
	case <-answer.Done():
	case <-s.closed:
		var none T
		return none, ErrStopped
	case <-ctx.Done():
	}
	return answer.Wait(ctx)
}

// await waits until every builder has built the log up to an offset.
func (c *cast) await(ctx context.Context, upTo messages.PhysicalOffset) error {
	answer := messages.NewAnswer[messages.PhysicalOffset]()
	c.send(actors.RoleDispatcher, messages.AwaitDispatched{UpTo: upTo, Answer: answer})
	if _, err := answer.Wait(ctx); err != nil {
		return fmt.Errorf("dispatch up to %d: %w", upTo, err)
	}
	return nil
}

// drain makes everything below an offset of the log readable and durable: log first, then what is derived from it.
func (c *cast) drain(ctx context.Context, end messages.PhysicalOffset) error {
	if err := c.flush(ctx); err != nil {
		return err
	}
	if c.pids[actors.RoleIndexer] != nil {
		c.send(actors.RoleIndexer, messages.LeaveIndex{})
	}
	if err := c.await(ctx, end); err != nil {
		return err
	}
	queues := messages.NewAnswer[int64]()
	c.send(actors.RoleQueueBuilder, messages.FlushQueues{Answer: queues})
	if _, err := queues.Wait(ctx); err != nil {
		return fmt.Errorf("flush the consume queues: %w", err)
	}
	if c.pids[actors.RoleIndexer] != nil {
		index := messages.NewAnswer[int64]()
		c.send(actors.RoleIndexer, messages.FlushIndex{Answer: index})
		_, err := index.Wait(ctx)
		c.indexLeft = errors.Is(err, vfs.ErrNoSpace)
		if err != nil && !c.indexLeft {
			return fmt.Errorf("flush the index: %w", err)
		}
	}
	return c.flush(ctx) // the checkpoint that says so
}

// flush makes everything durable that has been appended.
func (c *cast) flush(ctx context.Context) error {
	answer := messages.NewAnswer[messages.PhysicalOffset]()
	c.send(c.flusher, messages.FlushNow{Answer: answer})
	if _, err := answer.Wait(ctx); err != nil {
		return fmt.Errorf("flush the commit log: %w", err)
	}
	return nil
}

func (c *cast) send(role actors.Role, message any) { c.system.Root.Send(c.pids[role], message) }

// stopOrder stops whoever sends before whoever is sent to, so that nothing goes to an actor that has gone.
var stopOrder = []actors.Role{
	actors.RoleScheduler, actors.RoleCleaner, actors.RoleAllocator, actors.RoleWriter, actors.RoleCommitter, actors.RoleReplicator,
	actors.RoleDispatcher,
	actors.RoleQueueBuilder, actors.RoleIndexer, actors.RoleFlusher, actors.RolePullHold,
}

// stopAll stops the actors that are there; each answers what it still holds.
func (c *cast) stopAll() {
	for _, role := range stopOrder {
		c.stop(role)
	}
	for _, peer := range c.last {
		_ = c.system.Root.StopFuture(peer.PID()).Wait()
	}
	c.system.Shutdown()
}

// stop ends one actor, if it is there; one that has ended already is no error.
func (c *cast) stop(role actors.Role) {
	if pid := c.pids[role]; pid != nil {
		_ = c.system.Root.StopFuture(pid).Wait() // a timeout of 10 s of its own: what hangs is left behind
	}
}

// removeUnused deletes the segments that were made ahead and never written, as the original does at a clean stop.
func (s *Store) removeUnused() error {
	dir := s.opt.CommitLogDir
	entries, err := vfs.ListIfThere(s.opt.Disk, dir)
	if err != nil {
		return fmt.Errorf("remove unused segments: %w", err)
	}
	removed := false
	for _, e := range entries {
		start, err := segments.ParseName(e.Name)
		if err != nil || s.log.View().Find(start) != nil || start < int64(s.log.End()) {
			continue
		}
		if err := s.opt.Disk.Remove(path.Join(dir, e.Name)); err != nil {
			return fmt.Errorf("remove unused segments: %w", err)
		}
		removed = true
	}
	if !removed {
		return nil
	}
	if err := s.opt.Disk.SyncDir(dir); err != nil {
		return fmt.Errorf("remove unused segments: %w", err)
	}
	return nil
}
