package cluster

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
)

// carried are the files whose content goes with the log: whenever one is saved a leader puts it into a queue of an internal topic, so
// that its successor has it as it was at that place of the log, never newer: an offset that says "delivered" comes behind what was
// delivered.
var carried = []string{topicsFile, "subscriptionGroup.json", offsetsFile, lightOffsetsFile, delayFile}

const (
	topicsFile       = "topics.json"
	offsetsFile      = "consumerOffset.json"
	lightOffsetsFile = "lmqConsumerOffset.json"
	delayFile        = "delayOffset.json"
	// carryTimeout bounds the wait for the nodes in sync when a file is saved.
	carryTimeout = 3 * time.Second
	// carryAgain is how often all files are put again, so that retention does not take the last of them.
	carryAgain = time.Hour
	// maxCarried bounds what a file is when it is unpacked.
	maxCarried = 512 << 20
)

// carrier is the disk of a leader's configuration files.
type carrier struct {
	vfs.Disk
	store  *system.Store
	dir    string
	fenced func() bool

	mu    sync.Mutex
	due   map[int]bool // files that are still to be put
	delay map[int]messages.QueueOffset
	whole time.Time // when all were put
}

func newCarrier(disk vfs.Disk, store *system.Store, fenced func() bool) *carrier {
	return &carrier{Disk: disk, store: store, dir: store.ConfigDir(), fenced: fenced, due: map[int]bool{}}
}

func stateQueue(i int) messages.QueueKey {
	return messages.QueueKey{Topic: messages.TopicClusterState, QueueID: int32(i)}
}

// Rename puts a file that is carried into the log once it has its name. While puts are refused for want of nodes it is put later: nobody
// else can lead then who does not have what this node has.
func (c *carrier) Rename(oldName, newName string) error {
	if err := c.Disk.Rename(oldName, newName); err != nil {
		return err
	}
	for i, name := range carried {
		if newName != path.Join(c.dir, name) {
			continue
		}
		if c.fenced() || c.store.Writable() != nil {
			c.later(i, true)
			return nil
		}
		if err := c.put(i); err != nil {
			c.later(i, true)
			return err
		}
	}
	return nil
}

func (c *carrier) later(i int, due bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.due[i] = due
}

// put reads a file and stores it.
func (c *carrier) put(i int) error {
	var content json.RawMessage
	found, err := metadata.Load(c.Disk, path.Join(c.dir, carried[i]), &content)
	if err != nil {
		return fmt.Errorf("carry %s: %w", carried[i], err)
	}
	if !found {
		return nil
	}
	return c.record(i, content)
}

func (c *carrier) record(i int, content []byte) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(content)
	if err = errors.Join(err, z.Close()); err != nil {
		return fmt.Errorf("carry %s: %w", carried[i], err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), carryTimeout)
	defer cancel()
	key := stateQueue(i)
	r, err := c.store.Put(ctx, &messages.Message{Topic: key.Topic, QueueID: key.QueueID, Body: packed.Bytes(), BornTimestampMs: time.Now().UnixMilli()})
	if err != nil || r.Status != messages.PutOK {
		return fmt.Errorf("carry %s: %v: %w", carried[i], r.Status, errors.Join(err, messages.ErrBusy))
	}
	return nil
}

// round puts what is due: files that could not be put before, all of them now and then, and the offsets of delayed delivery when they
// have moved. One at a time runs.
func (c *carrier) round() error {
	if c.store.Writable() != nil {
		return nil
	}
	c.mu.Lock()
	if time.Since(c.whole) >= carryAgain {
		c.whole = time.Now()
		for i := range carried {
			c.due[i] = true
		}
	}
	due := maps.Clone(c.due)
	c.mu.Unlock()
	var errs []error
	for i := range carried {
		if !due[i] || carried[i] == delayFile {
			continue
		}
		c.later(i, false)
		if err := c.put(i); err != nil {
			c.later(i, true)
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, c.putDelays())...)
}

// putDelays stores how far delayed messages have been delivered: those deliveries stand in front of it in the log.
func (c *carrier) putDelays() error {
	now := c.store.DelayOffsets()
	if maps.Equal(now, c.delay) {
		return nil
	}
	table := metadata.DelayOffsets{Offsets: map[int]int64{}}
	for level, at := range now {
		table.Offsets[level] = int64(at)
	}
	content, err := json.Marshal(table)
	if err == nil {
		err = c.record(len(carried)-1, content)
	}
	if err == nil {
		c.delay = now
	}
	return err
}

// restore writes the files as the log has them, before anything reads them. first is a group's first leader, whose files are the group's.
func (c *carrier) restore(ctx context.Context, first bool) error {
	deleted, err := c.deletedSince(ctx)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	for i, name := range slices.Backward(carried) { // the topics last: what ends half-way begins again knowing what was deleted
		content, err := c.last(ctx, i)
		if err != nil {
			return fmt.Errorf("restore %s: %w", name, err)
		}
		if content == nil && first {
			continue
		}
		if err := c.write(name, content, deleted); err != nil {
			return fmt.Errorf("restore %s: %w", name, err)
		}
	}
	return nil
}

// keepDelays writes how far delayed messages have been delivered, as a follower's log has it: the node may leave its cluster, and deliver them
// by itself.
func (c *carrier) keepDelays() error {
	ctx, cancel := context.WithTimeout(context.Background(), carryTimeout)
	defer cancel()
	content, err := c.last(ctx, slices.Index(carried, delayFile))
	if err == nil && content != nil {
		err = c.write(delayFile, content, nil)
	}
	if err != nil {
		return fmt.Errorf("keep %s: %w", delayFile, err)
	}
	return nil
}

// last is the newest content of a file in the log, nil when there is none.
func (c *carrier) last(ctx context.Context, i int) ([]byte, error) {
	key := stateQueue(i)
	end := c.store.MaxOffset(key)
	if end == 0 {
		return nil, nil
	}
	r, err := c.store.Get(ctx, messages.GetMessage{Queue: key, Offset: end - 1, MaxMessages: 1})
	if err != nil {
		return nil, err
	}
	defer r.Release()
	if len(r.Records) == 0 {
		return nil, nil // it has expired
	}
	m, _, err := record.Parse(r.Records[0], true)
	if err != nil {
		return nil, err
	}
	z, err := gzip.NewReader(bytes.NewReader(m.Body))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(z, maxCarried))
}

// deletedSince tells which topics were deleted after this node's file of them was written, by what the log has of that.
func (c *carrier) deletedSince(ctx context.Context) (map[string]struct{}, error) {
	content, err := c.last(ctx, slices.Index(carried, topicsFile))
	if err != nil || content == nil {
		return nil, err
	}
	var told, logged metadata.TopicTable
	if err := metadata.Parse(content, &logged); err != nil {
		return nil, err
	}
	if _, err := metadata.Load(c.Disk, path.Join(c.dir, topicsFile), &told); err != nil && !errors.Is(err, metadata.ErrDamaged) {
		return nil, err
	}
	return told.DeletedSince(logged.Deleted), nil
}

// write brings a file into the state that the log gives it. Without one, what a follower has been told by its leader stays, but for
// progress that may be ahead of the log.
func (c *carrier) write(name string, content []byte, deleted map[string]struct{}) error {
	at := path.Join(c.dir, name)
	switch {
	case name == offsetsFile || name == lightOffsetsFile:
		return c.writeOffsets(at, content, deleted)
	case content != nil:
		return metadata.Save(c.Disk, at, json.RawMessage(content))
	case name == delayFile:
		return metadata.Save(c.Disk, at, metadata.DelayOffsets{Offsets: map[int]int64{}})
	}
	return nil
}

// writeOffsets takes of each group the further offset: its consumers have seen confirmed messages only. How far transactions have been
// looked at comes from the log alone, and so do the offsets of topics that were deleted since this node was told of any: what it has is of
// their life before.
func (c *carrier) writeOffsets(at string, content []byte, deleted map[string]struct{}) error {
	var told, logged metadata.OffsetTable
	found, err := metadata.Load(c.Disk, at, &told)
	if err != nil && !errors.Is(err, metadata.ErrDamaged) || !found && content == nil {
		return err
	}
	if content != nil {
		if err := metadata.Parse(content, &logged); err != nil {
			return err
		}
	}
	if logged.Offsets == nil {
		logged.Offsets = map[string]map[int32]int64{}
	}
	for name, queues := range told.Offsets {
		topic, group, _ := metadata.SplitOffsetKey(name)
		if _, anew := deleted[topic]; anew || group == messages.GroupTransactions {
			continue
		}
		if logged.Offsets[name] == nil {
			logged.Offsets[name] = map[int32]int64{}
		}
		for queue, next := range queues {
			logged.Offsets[name][queue] = max(logged.Offsets[name][queue], next)
		}
	}
	return metadata.Save(c.Disk, at, logged)
}
