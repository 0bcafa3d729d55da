package epochs_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/epochs"
	"github.com/actormq/actormq/testkit/memfs"
)

func history(pairs ...int64) epochs.History {
	h := epochs.History{Group: "g"}
	for i := 0; i < len(pairs); i += 2 {
		h.Epochs = append(h.Epochs, epochs.Epoch{Number: pairs[i], Start: messages.PhysicalOffset(pairs[i+1])})
	}
	return h
}

func TestTheCommonPartOfTwoLogs(t *testing.T) {
	for name, c := range map[string]struct {
		mine      epochs.History
		end       messages.PhysicalOffset
		leader    epochs.History
		leaderEnd messages.PhysicalOffset
		want      messages.PhysicalOffset
		none      bool
	}{
		"a follower that lags":             {mine: history(1, 0), end: 50, leader: history(1, 0, 2, 100), leaderEnd: 200, want: 50},
		"one with the whole of an epoch":   {mine: history(1, 0), end: 100, leader: history(1, 0, 2, 100), leaderEnd: 200, want: 100},
		"a deposed leader that went on":    {mine: history(1, 0), end: 130, leader: history(1, 0, 2, 100), leaderEnd: 110, want: 100},
		"one whose own epoch nobody knows": {mine: history(1, 0, 2, 80), end: 130, leader: history(1, 0, 3, 100), leaderEnd: 190, want: 80},
		"one that knows an epoch of which it has nothing": {
			mine: history(1, 0, 2, 100), end: 90, leader: history(1, 0, 2, 100), leaderEnd: 190, want: 90,
		},
		"the same number, another start":  {mine: history(1, 0, 2, 80), end: 130, leader: history(1, 0, 2, 100), leaderEnd: 190, want: 80},
		"a leader with less":              {mine: history(1, 0), end: 130, leader: history(1, 0), leaderEnd: 100, want: 100},
		"nothing in common":               {mine: history(4, 10), end: 130, leader: history(5, 0), leaderEnd: 100, none: true},
		"a log that was never in a group": {mine: epochs.History{}, end: 130, leader: history(5, 0), leaderEnd: 100, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			at, ok := epochs.Common(c.mine, c.end, c.leader, c.leaderEnd)
			require.Equal(t, !c.none, ok)
			require.Equal(t, c.want, at)
		})
	}
}

func TestAnEpochBeginsOnlyBehindAllOthers(t *testing.T) {
	h, err := history(1, 0, 2, 100).Begin(3, 90)
	require.NoError(t, err, "the epoch of which there is nothing is forgotten")
	require.Equal(t, history(1, 0, 3, 90), h)
	_, err = h.Begin(3, 200)
	require.ErrorIs(t, err, epochs.ErrHistory)
	for n := int64(4); n < 3000; n++ {
		h, err = h.Begin(n, messages.PhysicalOffset(n))
		require.NoError(t, err)
	}
	require.NoError(t, h.Validate())
	require.EqualValues(t, 2999, h.Last())
}

func TestAHistoryIsKeptOrEmpty(t *testing.T) {
	d := memfs.New()
	h, err := epochs.Load(d, "s/epochs.json")
	require.NoError(t, err)
	require.Zero(t, h.Last())
	require.NoError(t, epochs.Save(d, "s/epochs.json", history(1, 0, 2, 100)))
	h, err = epochs.Load(d, "s/epochs.json")
	require.NoError(t, err)
	require.Equal(t, history(1, 0, 2, 100), h)
	require.NoError(t, epochs.Save(d, "s/epochs.json", history(2, 0, 1, 100)))
	h, err = epochs.Load(d, "s/epochs.json")
	require.NoError(t, err)
	require.Empty(t, h.Epochs, "numbers that go back are no history")
}
