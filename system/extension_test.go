package system_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/testkit/memfs"
)

// TestExtensionsHideNoMessage: through kills, power cuts, stops and deletions, whoever wants a tag gets every message with it. What an
// extension has lost matches every tag; what it says is right.
func TestExtensionsHideNoMessage(t *testing.T) {
	for seed := range uint64(12) {
		disk := memfs.New()
		opt := small(disk)
		opt.ConsumeQueueExt, opt.ConsumeQueueExtBytes = true, 400
		kept := 0
		for round := range 6 {
			s, err := system.Open(opt)
			require.NoError(t, err)
			key := messages.QueueKey{Topic: "T"}
			require.GreaterOrEqual(t, int(s.MaxOffset(key)), kept)
			for i := range 60 {
				m := message("T", 0, fmt.Sprint(round, "-", i))
				m.Properties = messages.PropertiesOf(map[string]string{messages.PropertyTags: fmt.Sprint("t", i%3)})
				put(t, s, m)
			}
			require.NoError(t, s.AwaitDispatched(t.Context()))
			for tag := range 3 {
				requireTag(t, s, key, fmt.Sprint("t", tag), round%6 == 0)
			}
			switch (seed + uint64(round)) % 3 {
			case 0:
				opt.Disk = disk.Clone()
			case 1:
				opt.Disk = disk.Crash(seed)
			default:
				kept = int(s.MaxOffset(key))
				require.NoError(t, s.Close(t.Context()))
			}
			_ = s.Close(context.WithoutCancel(t.Context()))
			disk = opt.Disk.(*memfs.Disk)
		}
		s, err := system.Open(opt)
		require.NoError(t, err)
		require.NoError(t, s.DeleteTopic(t.Context(), "T"))
		entries, err := disk.List("store/consumequeue_ext/T/0")
		require.NoError(t, err)
		require.Empty(t, entries)
		require.NoError(t, s.Close(t.Context()))
	}
}

// requireTag pulls a tag from the beginning on and compares with all messages.
func requireTag(t *testing.T, s *system.Store, key messages.QueueKey, tag string, only bool) {
	t.Helper()
	code := int64(messages.JavaHash(tag))
	pull := func(want func(int64) bool) (bodies, tags []string) {
		for at := s.MinOffset(key); at < s.MaxOffset(key); {
			r, err := s.Get(t.Context(), messages.GetMessage{Queue: key, Offset: at, MaxMessages: 32, Tags: want})
			require.NoError(t, err)
			for _, raw := range r.Records {
				rec, _, err := record.Parse(raw, true)
				require.NoError(t, err)
				text, _ := messages.ViewProperties(rec.Properties).Get(messages.PropertyTags)
				bodies, tags = append(bodies, string(rec.Body)), append(tags, strings.Clone(text))
			}
			at = r.NextOffset
			r.Release()
		}
		return bodies, tags
	}
	all, tags := pull(nil)
	got, gotTags := pull(func(c int64) bool { return c == code })
	for i, body := range all {
		if tags[i] == tag {
			require.Contains(t, got, body, "a message that has the tag")
		}
	}
	if only {
		for _, other := range gotTags {
			require.Equal(t, tag, other)
		}
	}
}
