package system

import (
	"errors"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/ha"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/actors/writer"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// Replicas returns the slaves that follow this store; none where nobody can connect.
func (s *Store) Replicas() []messages.Replica {
	if s.replicas == nil {
		return nil
	}
	return s.replicas.Replicas()
}

// ReplicasRefused counts the connections that HAAllow has kept out.
func (s *Store) ReplicasRefused() int64 {
	if s.replicas == nil {
		return 0
	}
	return s.replicas.Strangers()
}

// Following tells how a slave gets on with its master; the zero value where nobody is followed.
func (s *Store) Following() messages.Following {
	if s.follower == nil {
		return messages.Following{}
	}
	return s.follower.Following()
}

// HAAddress is where slaves connect, as host:port; empty where nobody can.
func (s *Store) HAAddress() string {
	if s.replicas == nil {
		return ""
	}
	return s.replicas.Address()
}

// spawnReplicator starts the replicator of a master that serves slaves, or waits for them.
func (s *Store) spawnReplicator() error {
	o := s.opt
	if o.HAListen == "" && o.Role != messages.SyncMaster {
		return nil
	}
	s.grownReplicas = actors.NewBell(s.cast.address(actors.RoleReplicator), messages.Announce(messages.LogGrown{}))
	port := s.blocking(actors.RoleReplicator)
	r, err := ha.NewReplicator(ha.ReplicatorConfig{
		Log: s.log, Listen: o.HAListen, Allow: o.HAAllow, Grown: s.grownReplicas, Heartbeat: o.HAHeartbeat, Housekeeping: o.HAHousekeeping,
		BatchBytes: o.HABatchBytes, FallbehindMax: o.HAFallbehind, Timeout: o.SlaveTimeout, Group: o.Group, Confirmed: s.onConfirmed,
		Logger: o.Logger.With().Str("role", string(actors.RoleReplicator)).Logger(),
	}, port)
	if err != nil {
		return err
	}
	if _, err = s.cast.spawn(actors.RoleReplicator, r, port); err != nil {
		return errors.Join(err, r.Close())
	}
	s.replicas = r
	return nil
}

// replicated tells the writer of the replicator, and of the role.
func (s *Store) replicated(conf *writer.Config) {
	switch s.opt.Role {
	case messages.SyncMaster:
		if s.replicas != nil {
			conf.Replicate = s.replicas.Await
			if s.written == nil && s.opt.FlushDiskType == AsyncFlush {
				conf.ReplicateAlone, conf.SendAlone, conf.Replicas = s.replicas.AwaitHere, s.replicas.SendHere, s.grownReplicas
			}
		}
	case messages.Slave:
		conf.Follower = true
		conf.NowMs = func() int64 { return 0 } // the time of the log is that of its master's records
	}
}

// spawnFollower starts the follower of a slave.
func (s *Store) spawnFollower() error {
	o := s.opt
	if o.Role != messages.Slave {
		return nil
	}
	var flusher *mailbox.Combining
	if o.FlushDiskType == SyncFlush {
		flusher = s.cast.ports[actors.RoleFlusher]
	}
	s.follower = ha.NewFollower(ha.FollowerConfig{
		Log: s.log, Writer: s.writer, Appended: s.behind, Flusher: flusher, Master: o.HAMaster, FullCopy: o.HAFullCopy, Heartbeat: o.HAHeartbeat,
		Housekeeping: o.HAHousekeeping, Group: o.Group, Confirmed: s.onConfirmed,
		Logger: o.Logger.With().Str("role", string(actors.RoleFollower)).Logger(),
	})
	_, err := s.cast.spawn(actors.RoleFollower, s.follower, s.blocking(actors.RoleFollower))
	return err
}

// Follow tells a slave whose options name no master (HAMaster) where it replicates from, as host:port; for others, and for replicas
// of a group (FollowLeader), it does nothing.
func (s *Store) Follow(master string) {
	if s.follower != nil && s.opt.HAMaster == "" && s.opt.Group == nil {
		s.cast.send(actors.RoleFollower, messages.FollowMaster{Address: master})
	}
}

// cutPartial takes a part of a record off the end of a slave's log, when it stops: the master sends the record again, and
// some would not go on in the middle of one. What it cuts is zeroed; the stop makes that durable.
func (s *Store) cutPartial() error {
	whole := messages.PhysicalOffset(s.dispatched.Load())
	if s.opt.Role != messages.Slave || whole >= s.log.End() {
		return nil
	}
	seg := s.log.View().Find(int64(whole))
	if seg == nil {
		return nil
	}
	err := vfs.Guard(seg.Path(), func() error {
		clear(seg.Data()[int64(whole)-seg.Start() : seg.Wrote()])
		return nil
	})
	if err != nil {
		return err
	}
	for _, cut := range s.log.CutTo(whole, s.log.StoreTimestampMs()) {
		cut.Retire(nil)
	}
	return nil
}
