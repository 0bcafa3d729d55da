package transaction

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

func TestJudge(t *testing.T) {
	r := rules{timeout: 6 * time.Second, max: 3, reserved: time.Hour, renewAfter: 10 * time.Minute, spread: 100}
	now := time.UnixMilli(1_700_000_000_000)
	ago := func(d time.Duration) int64 { return now.Add(-d).UnixMilli() }
	for name, c := range map[string]struct {
		half half
		end  messages.QueueOffset
		want verdict
	}{
		"young":                       {half: half{sinceMs: ago(5999 * time.Millisecond)}, want: wait},
		"old enough":                  {half: half{sinceMs: ago(6 * time.Second)}, want: check},
		"immune":                      {half: half{sinceMs: ago(19 * time.Second), immunity: 20 * time.Second}, want: wait},
		"no longer immune":            {half: half{sinceMs: ago(20 * time.Second), immunity: 20 * time.Second}, want: check},
		"immune for less than others": {half: half{sinceMs: ago(time.Second), immunity: time.Second}, want: check},
		"checked twice":               {half: half{sinceMs: ago(time.Minute), checks: 2}, want: check},
		"checked often enough":        {half: half{sinceMs: ago(time.Minute), checks: 3}, want: giveUp},
		"too old":                     {half: half{sinceMs: ago(time.Hour)}, want: giveUp},
		"stored long ago":             {half: half{sinceMs: ago(11 * time.Minute), immunity: time.Hour}, want: renew},
		"copied lately":               {half: half{sinceMs: ago(11 * time.Minute), storedMs: ago(0)}, want: check},
		"far behind":                  {half: half{sinceMs: ago(0), at: 7}, end: 108, want: renew},
		"not so far behind":           {half: half{sinceMs: ago(0), at: 7}, end: 107, want: wait},
		"from the future":             {half: half{sinceMs: ago(-time.Hour), storedMs: ago(-time.Hour)}, want: check},
	} {
		h := c.half
		if h.immunity == 0 {
			h.immunity = -1
		}
		if h.storedMs == 0 {
			h.storedMs = h.sinceMs
		}
		require.Equal(t, c.want, r.judge(&h, now, c.end), name)
	}
}

func TestHalfOf(t *testing.T) {
	of := func(p string) *half {
		return halfOf(&record.Record{
			QueueOffset: 9, PhysicalOffset: 90, BornTimestampMs: 1, StoreTimestampMs: 1000, Properties: []byte(p),
		})
	}
	require.Equal(t, &half{at: 9, place: 90, sinceMs: 1000, storedMs: 1000, immunity: -1}, of("TAGS\x01x"),
		"the clock of a producer does not make its message old")
	require.Equal(t, 20*time.Second, of("CHECK_IMMUNITY_TIME_IN_SECONDS\x0120").immunity)
	for _, odd := range []string{"-1", "x", "99999999999"} {
		require.Negative(t, of("CHECK_IMMUNITY_TIME_IN_SECONDS\x01"+odd).immunity)
	}
	copied := of("TRAN_PREPARED_QUEUE_OFFSET\x014\x02TRANSACTION_CHECK_TIMES\x012")
	require.Equal(t, &half{
		at: 9, place: 90, sinceMs: 1, storedMs: 1000, immunity: -1, checks: 2, names: []messages.QueueOffset{4},
	}, copied)
	require.Empty(t, of("TRAN_PREPARED_QUEUE_OFFSET\x0112").names, "a copy lies behind what it copies")
	require.Zero(t, of("TRANSACTION_CHECK_TIMES\x01-3").checks)
}

func TestProgressStopsAtTheFirstUndecided(t *testing.T) {
	l := newLedger(100, 10)
	for at := range messages.QueueOffset(6) {
		l.add(&half{at: 100 + at})
	}
	l.walked = 106
	l.settle(nil)
	require.EqualValues(t, 100, l.head)
	l.finish(100, committed)
	l.finish(101, dropped)
	l.finish(103, committed)
	l.settle(nil)
	require.EqualValues(t, 102, l.head)
	l.finish(102, committed)
	l.settle([]messages.QueueOffset{102})
	require.EqualValues(t, 102, l.head, "its op message is not written yet")
	l.settle([]messages.QueueOffset{7})
	require.EqualValues(t, 102, l.head, "one from long ago does not move it back, and holds it where it is")
	l.settle(nil)
	require.EqualValues(t, 104, l.head)
	require.Equal(t, []messages.QueueOffset{104, 105}, l.due())
	l.add(&half{at: 103})
	require.Len(t, l.waiting, 2, "what is over is not taken again")
	require.Equal(t, []state{committed, dropped, committed, committed, open, over},
		[]state{l.ends.get(100), l.ends.get(101), l.ends.get(102), l.ends.get(103), l.ends.get(104), over})
}

func TestCopiesStandForEachOther(t *testing.T) {
	l := newLedger(0, 10)
	l.add(&half{at: 0, sinceMs: 5, checks: 1})
	for at := messages.QueueOffset(10); at < 60; at += 10 {
		l.renewed(l.live(0), &messages.PutResult{QueueOffset: at, PhysicalOffset: 7, StoreTimestampMs: 900})
	}
	require.Len(t, l.waiting, 1)
	h := l.waiting[50]
	require.Equal(t, []messages.QueueOffset{0, 20, 30, 40}, h.names, "the first and the last ones")
	require.EqualValues(t, 1, h.checks)
	require.EqualValues(t, 5, h.sinceMs)
	require.EqualValues(t, 900, h.storedMs)
	require.EqualValues(t, 50, l.live(0))
	require.EqualValues(t, 50, l.live(40))
	require.EqualValues(t, 10, l.live(10), "forgotten")
	require.Len(t, l.copies, 4)
	require.Equal(t, []messages.QueueOffset{50, 0, 20, 30, 40}, l.namesOf(50))
	l.add(&half{at: 50, names: []messages.QueueOffset{0}})
	require.Same(t, h, l.waiting[50], "the walk comes to what is known")
	l.finish(50, committed)
	require.Empty(t, l.copies)
	require.Empty(t, l.waiting)
	require.Equal(t, committed, l.ends.get(0))
	l.renewed(50, &messages.PutResult{})
	require.Empty(t, l.waiting)
}

// After a crash the original and its copy may both be in front of the progress.
func TestACopySupersedesWhatItCopies(t *testing.T) {
	l := newLedger(0, 10)
	l.add(&half{at: 3, checks: 4, sinceMs: 1})
	l.add(&half{at: 8, sinceMs: 2, names: []messages.QueueOffset{3}})
	require.Equal(t, []messages.QueueOffset{8}, l.due())
	require.Equal(t, 4, l.waiting[8].checks)
	require.EqualValues(t, 8, l.live(3))

	l = newLedger(0, 10)
	l.ends.set(3, over, 1)
	l.add(&half{at: 8, names: []messages.QueueOffset{3}})
	require.Empty(t, l.waiting, "an op message for the original is one for the copy, as for the original's broker")
	require.Equal(t, over, l.ends.get(8))
}

func TestWindow(t *testing.T) {
	var w window
	w.set(5, over, certain)
	w.set(5, dropped, certain)
	w.set(5, over, certain)
	require.Equal(t, dropped, w.get(5), "how it ended stays known")
	require.Equal(t, open, w.get(6))
	require.Equal(t, open, w.get(-1))
	w.set(-1, over, certain)
	require.True(t, w.fits(maxWindow-1))
	require.False(t, w.fits(maxWindow))
	w.set(maxWindow, over, certain)
	require.Equal(t, open, w.get(maxWindow))
	const far = 10 * keptBehind
	w.set(far, over, certain)
	w.slide(far)
	require.Equal(t, over, w.get(far))
	require.Equal(t, open, w.get(5), "forgotten")
	require.LessOrEqual(t, len(w.ends), keptBehind+1)
	w.slide(100 * keptBehind)
	require.Empty(t, w.ends)
	w.set(100*keptBehind, committed, certain)
	require.Equal(t, committed, w.get(100*keptBehind))
}

func TestAnOpMessageCountsForWhatStandsInFrontOfIt(t *testing.T) {
	l := newLedger(0, 10)
	for at, by := range []messages.PhysicalOffset{500, 100, 700} {
		l.ends.set(messages.QueueOffset(at), over, by)
	}
	l.ends.set(2, over, 300)
	require.False(t, l.ends.known(0), "it has to be read where the half message stands")
	l.add(&half{at: 0, place: 400})
	l.add(&half{at: 1, place: 450})
	l.add(&half{at: 2, place: 600})
	l.add(&half{at: 9, place: 800, names: []messages.QueueOffset{1}})
	require.Equal(t, []messages.QueueOffset{9}, l.due(), "the one that got an old queue offset, by its copy")
	require.Equal(t, []state{over, open, over}, []state{l.ends.get(0), l.ends.get(1), l.ends.get(2)})
	l.finish(9, committed)
	require.Equal(t, committed, l.ends.of(1, 450))
	require.True(t, l.ends.known(1))
}

// Whatever is put, ended and renewed in whatever order: the progress never passes an undecided one, and ends at the end.
func TestLedgerAgainstAModel(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		l := newLedger(0, 1000)
		undecided := map[messages.QueueOffset]bool{}
		tail := messages.QueueOffset(0)
		for range 300 {
			switch random.IntN(4) {
			case 0, 1:
				undecided[tail] = true
				tail++
			case 2:
				for at := range undecided {
					l.finish(at, committed)
					delete(undecided, at)
					break
				}
			case 3:
				for ; l.walked < tail; l.walked++ {
					l.add(&half{at: l.walked})
				}
				for at := range undecided {
					l.renewed(at, &messages.PutResult{QueueOffset: tail})
					delete(undecided, at)
					undecided[tail] = true
					tail++
					break
				}
				l.settle(nil)
				for at := range undecided {
					require.GreaterOrEqual(t, at, l.head, "seed %d", seed)
				}
			}
		}
		for ; l.walked < tail; l.walked++ {
			l.add(&half{at: l.walked})
		}
		require.Len(t, l.waiting, len(undecided), "seed %d", seed)
		for at := range undecided {
			l.finish(at, dropped)
		}
		l.settle(nil)
		require.Equal(t, tail, l.head, "seed %d", seed)
	}
}
