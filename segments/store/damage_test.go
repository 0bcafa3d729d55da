package store_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/checkpoint"
	"github.com/actormq/actormq/segments/consumequeue"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

// damages are things that can happen to a store of 100 messages; each tells which of them are lost.
var damages = map[string]func(t testing.TB, disk *memfs.Disk, w *logWriter) (lost []int){
	"nothing": func(testing.TB, *memfs.Disk, *logWriter) []int { return nil },
	"torn tail": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		last := w.puts[99]
		patchLog(t, disk, (last.from+last.to)/2, zeroBytes(last.to-(last.from+last.to)/2))
		return []int{99}
	},
	"torn header at the tail": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		patchLog(t, disk, w.puts[99].from, zeroBytes(40))
		return []int{99}
	},
	"garbage behind the end": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		patchLog(t, disk, w.pos, []byte(strings.Repeat("garbage", 30)))
		return nil
	},
	"huge size behind the end": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		patchLog(t, disk, w.pos, binary.BigEndian.AppendUint32([]byte{0x7f, 0xff, 0xff, 0xff}, record.Magic))
		return nil
	},
	"prepared segments": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		end := w.pos - w.pos%testSegment
		createFile(t, disk, segmentPath(end+testSegment), testSegment)
		createFile(t, disk, segmentPath(end+2*testSegment), testSegment)
		return nil
	},
	"used segment behind the end": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		patchLog(t, disk, w.pos-w.pos%testSegment+testSegment+100, []byte("something"))
		return nil
	},
	"torn record in the middle (W3)": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		patchLog(t, disk, w.puts[50].from, zeroBytes(60))
		return []int{50}
	},
	"flipped bit in a body (W3)": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		patchLog(t, disk, w.puts[51].from+88, []byte{^w.puts[51].body[0]})
		return []int{51}
	},
	"damaged size": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		patchLog(t, disk, w.puts[60].from, []byte{0, 0, 1})
		return []int{60}
	},
	"two records lost in the middle": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		patchLog(t, disk, w.puts[61].from+10, zeroBytes(w.puts[62].from-w.puts[61].from))
		return []int{61, 62}
	},
	"torn blank": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		for i, p := range w.puts {
			if p.to != w.puts[i+1].from {
				patchLog(t, disk, p.to, zeroBytes(record.BlankBytes))
				return nil
			}
		}
		return nil
	},
	"first record of the log": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		patchLog(t, disk, 0, zeroBytes(20))
		return []int{0}
	},
	"missing segment": func(t testing.TB, disk *memfs.Disk, w *logWriter) (lost []int) {
		require.NoError(t, disk.Remove(segmentPath(testSegment)))
		for i, p := range w.puts {
			if p.from/testSegment == 1 {
				lost = append(lost, i)
			}
		}
		return lost
	},
	"missing queues": func(t testing.TB, disk *memfs.Disk, _ *logWriter) []int {
		removeTree(t, disk, "s/consumequeue")
		return nil
	},
	"missing queue": func(t testing.TB, disk *memfs.Disk, _ *logWriter) []int {
		removeTree(t, disk, "s/consumequeue/B/1")
		return nil
	},
	"short queue file": func(t testing.TB, disk *memfs.Disk, _ *logWriter) []int {
		truncateFile(t, disk, queueFile("A", 0), 133)
		return nil
	},
	"queue with zeros at the end": func(t testing.TB, disk *memfs.Disk, _ *logWriter) []int {
		overwrite(t, disk, queueFile("A", 0), 10*20, zeroBytes(10*20))
		return nil
	},
	"queue with a hole": func(t testing.TB, disk *memfs.Disk, _ *logWriter) []int {
		overwrite(t, disk, queueFile("A", 0), 5*20, zeroBytes(3*20))
		return nil
	},
	"queue ahead of the log": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		overwrite(t, disk, queueFile("A", 0), 17*20, append(unitBytes(w.pos, 150), unitBytes(w.pos+150, 150)...))
		return nil
	},
	"queue with a unit too many (W26)": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		b := fixture.ReadFile(t, disk, queueFile("A", 0))
		overwrite(t, disk, queueFile("A", 0), 13*20, b[12*20:19*20])
		return nil
	},
	"queue with a unit of another": func(t testing.TB, disk *memfs.Disk, w *logWriter) []int {
		require.NotEqual(t, w.puts[97].key, w.puts[96].key)
		overwrite(t, disk, queueFile("A", 0), 17*20, unitBytes(w.puts[97].from, w.puts[97].to-w.puts[97].from))
		return nil
	},
	"empty last queue file (W33)": func(t testing.TB, disk *memfs.Disk, _ *logWriter) []int {
		createFile(t, disk, "s/consumequeue/A/0/00000000000000000400", testQueue)
		return nil
	},
	"queue of fillers (W4)": func(t testing.TB, disk *memfs.Disk, _ *logWriter) []int {
		removeTree(t, disk, "s/consumequeue/A/0")
		createFile(t, disk, queueFile("A", 0), testQueue)
		overwrite(t, disk, queueFile("A", 0), 0, unitBytes(0, 0x7fffffff))
		return nil
	},
	"missing index (W17)": func(t testing.TB, disk *memfs.Disk, _ *logWriter) []int {
		removeTree(t, disk, "s/index")
		return nil
	},
	"missing last index file": func(t testing.TB, disk *memfs.Disk, _ *logWriter) []int {
		names := indexFiles(t, disk)
		require.NoError(t, disk.Remove(names[len(names)-1]))
		return nil
	},
	"short index file": func(t testing.TB, disk *memfs.Disk, _ *logWriter) []int {
		names := indexFiles(t, disk)
		truncateFile(t, disk, names[len(names)-2], 100)
		return nil
	},
	"no checkpoint": func(t testing.TB, disk *memfs.Disk, _ *logWriter) []int {
		require.NoError(t, disk.Remove("s/checkpoint"))
		return nil
	},
	"damaged checkpoint": func(t testing.TB, disk *memfs.Disk, _ *logWriter) []int {
		truncateFile(t, disk, "s/checkpoint", 5)
		return nil
	},
	"all derived files gone": func(t testing.TB, disk *memfs.Disk, _ *logWriter) []int {
		for _, name := range []string{"consumequeue", "index"} {
			removeTree(t, disk, "s/"+name)
		}
		require.NoError(t, disk.Remove("s/checkpoint"))
		return nil
	},
}

func queueFile(topic string, id int) string {
	return fmt.Sprintf("s/consumequeue/%s/%d/00000000000000000000", topic, id)
}

func indexFiles(t testing.TB, disk *memfs.Disk) []string {
	entries, err := disk.List("s/index")
	require.NoError(t, err)
	var names []string
	for _, e := range entries {
		names = append(names, path.Join("s/index", e.Name))
	}
	return names
}

// TestDamage (W3, W4, W17, W26, W33, L26) opens each damaged store after a clean stop and after a kill: what is not hit is there, in its queue and by its
// keys, queue offsets go on where they were, and opening again changes nothing.
func TestDamage(t *testing.T) {
	for name, damage := range damages {
		for how, make := range map[string]func(testing.TB, int) (*memfs.Disk, *logWriter){"clean": closed, "killed": killed} {
			t.Run(name+"/"+how, func(t *testing.T) {
				disk, w := make(t, 100)
				lost := damage(t, disk, w)
				s := open(t, disk)
				first := contentOf(t, s)
				first.requirePuts(t, without(w.puts, lost))
				require.Len(t, first.Bodies, 100-len(lost))
				requireNext(t, w, lost, s.QueueOffsets)
				require.NoError(t, s.Close())
				before := tree(t, disk, "s", "/index/", "/checkpoint")

				second, report := recovered(t, disk)
				require.Equal(t, first, second)
				require.NotContains(t, events(report), store.CutTail)
				require.Equal(t, before, tree(t, disk, "s", "/index/", "/checkpoint"))
				s = open(t, disk)
				require.NoError(t, s.CloseClean())

				third, report := recovered(t, disk)
				require.Equal(t, first, third)
				require.Zero(t, report.Dispatched)
			})
		}
	}
}

func without(puts []put, lost []int) []put {
	var kept []put
	for i, p := range puts {
		if len(lost) > 0 && lost[0] == i {
			lost = lost[1:]
			continue
		}
		kept = append(kept, p)
	}
	return kept
}

// requireNext checks that each queue goes on behind its last message; one that is lost may have lost its offset.
func requireNext(t *testing.T, w *logWriter, lost []int, next map[messages.QueueKey]messages.QueueOffset) {
	t.Helper()
	least := map[messages.QueueKey]messages.QueueOffset{}
	for _, p := range without(w.puts, lost) {
		least[p.key] = p.at + 1
	}
	for key, want := range w.next {
		require.GreaterOrEqual(t, next[key], least[key], "%v", key)
		require.LessOrEqual(t, next[key], want, "%v", key)
	}
}

func TestWhatIsCutIsKeptInQuarantine(t *testing.T) {
	disk, w := killed(t, 100)
	garbage := strings.Repeat("garbage", 30)
	patchLog(t, disk, w.pos, []byte(garbage))
	next := w.pos - w.pos%testSegment + testSegment
	patchLog(t, disk, next+100, []byte("something"))
	s := open(t, disk)
	dir := s.Report.Quarantine
	require.Equal(t, "s/quarantine/20231114T221320.000Z", dir)
	require.Equal(t, map[string]string{
		path.Join(dir, fmt.Sprintf("commitlog-%020d", w.pos)):    garbage,
		path.Join(dir, fmt.Sprintf("commitlog-%020d", next+100)): "something",
	}, tree(t, disk, dir))
	require.Equal(t, []store.Finding{store.RemovedSegment, store.CutTail}, events(s.Report)[:2])
	for seed := range uint64(10) {
		require.Equal(t, tree(t, disk, dir), tree(t, disk.Crash(seed), dir), "seed %d", seed)
	}
	require.NoError(t, s.Close())

	patchLog(t, disk, w.pos, []byte("more"))
	s = open(t, disk)
	require.Equal(t, dir+"-2", s.Report.Quarantine)
	require.NoError(t, s.Close())

	p := testParams()
	p.QuarantineBytes = int64(len(garbage)) + 20
	patchLog(t, disk, w.pos, []byte("too much"))
	s, err := store.Open(disk, p, testOptions())
	require.NoError(t, err)
	require.Equal(t, []store.Finding{store.NotKept, store.CutTail}, events(s.Report)[:2])
	require.ErrorContains(t, s.Report.Events[0].Err, "quarantine is full")
	require.NoError(t, s.Close())
}

func TestNoRoomForACopyIsReported(t *testing.T) {
	disk, w := killed(t, 40)
	patchLog(t, disk, w.pos, []byte("garbage"))
	full := errors.New("full")
	disk.Inject(func(op memfs.Op) error {
		if op.Kind == memfs.KindWrite && strings.Contains(op.Name, "quarantine") {
			return full
		}
		return nil
	})
	s := open(t, disk)
	require.Equal(t, store.NotKept, s.Report.Events[0].What)
	require.ErrorIs(t, s.Report.Events[0].Err, full)
	require.NoError(t, s.Close())
}

// TestW9 (spec/store.md §16): a blank at the end belongs to the log, so that the end does not move back over a restart.
func TestW9TrailingBlankBelongsToTheLog(t *testing.T) {
	for how, make := range map[string]func(testing.TB, int) (*memfs.Disk, *logWriter){"clean": closed, "killed": killed} {
		disk, w := make(t, 100)
		rest := testSegment - w.pos%testSegment
		patchLog(t, disk, w.pos, record.AppendBlank(nil, int32(rest)))
		c, _ := recovered(t, disk)
		require.Equal(t, messages.PhysicalOffset(w.pos+rest), c.End, how)
		c.requirePuts(t, w.puts)

		patchLog(t, disk, w.pos, record.AppendBlank(nil, int32(rest-1)))
		c, report := recovered(t, disk)
		require.Equal(t, messages.PhysicalOffset(w.pos), c.End, "it is damaged")
		require.ErrorIs(t, report.Plan.Stop, store.ErrBlankSize)
	}
}

// TestForgedRecordIsNotBelieved puts whole records, with the right places in them, into a body, and damages what is around.
func TestForgedRecordIsNotBelieved(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.fill(10)
	forged := w.message(messages.QueueKey{Topic: "Forged"}, "I was never put")
	raw, err := record.Append(nil, &forged)
	require.NoError(t, err)
	const padding = 50
	forgedAt := w.pos + 88 + padding
	record.SetPlace(raw, 0, messages.PhysicalOffset(forgedAt), testStartMs)
	blank := record.AppendBlank(nil, int32(testSegment-(forgedAt+int64(len(raw)))%testSegment))
	carrier := w.put("A", 0, strings.Repeat("p", padding)+string(raw)+string(blank))
	w.fill(10)
	require.NoError(t, open(t, disk).CloseClean())
	for _, clean := range []bool{true, false} {
		for _, damage := range []struct {
			at    int64
			bytes []byte
		}{{0, []byte{0x55}}, {4, []byte{0x55}}, {30, []byte{0x55}}, {3, []byte{88 + padding}}} { // size, magic, place, exact size
			d := disk.Clone()
			if !clean {
				createFile(t, d, "s/abort", 0)
			}
			require.Less(t, carrier.to-carrier.from, int64(512))
			patchLog(t, d, carrier.from+damage.at, damage.bytes)
			if damage.at == 3 {
				patchLog(t, d, carrier.from+2, []byte{0})
			}
			c, _ := recovered(t, d)
			require.NotContains(t, c.Queues, messages.QueueKey{Topic: "Forged"})
			require.NotContains(t, c.Bodies, messages.PhysicalOffset(forgedAt))
			c.requirePuts(t, append(w.puts[:10:10], w.puts[11:]...))
		}
	}
}

// TestHolesAreClosed: what is damaged inside the log is copied aside, and a record of the same size, topic and queue offset takes
// its place, so that RocketMQ, which stops at the first damage, keeps what follows (spec/store.md §16, W3; §8.4).
func TestHolesAreClosed(t *testing.T) {
	for how, harm := range map[string][]byte{"header": zeroBytes(60), "body": nil} {
		for _, queues := range []bool{true, false} {
			disk, w := killed(t, 100)
			lost := w.puts[51]
			raw := fixture.ReadFile(t, disk, segmentPath(lost.from))[lost.from%testSegment:][:lost.to-lost.from]
			if harm != nil {
				patchLog(t, disk, lost.from, harm)
				copy(raw, harm)
			} else {
				patchLog(t, disk, lost.from+88, []byte("X"))
				raw[88] = 'X'
			}
			if !queues {
				removeTree(t, disk, "s/consumequeue")
			}
			s := open(t, disk)
			require.Contains(t, events(s.Report), store.ClosedHole, how)
			kept := tree(t, disk, s.Report.Quarantine)
			require.Equal(t, map[string]string{path.Join(s.Report.Quarantine, fmt.Sprintf("commitlog-%020d", lost.from)): string(raw)}, kept)
			require.NoError(t, s.Close())
			s = open(t, disk)
			require.Empty(t, s.Report.Plan.Holes)
			r, kind, err := record.Parse(fixture.ReadFile(t, disk, segmentPath(lost.from))[lost.from%testSegment:], true)
			require.NoError(t, err)
			require.Equal(t, record.KindMessage, kind)
			require.True(t, r.Lost())
			require.EqualValues(t, lost.to-lost.from, r.Size)
			require.EqualValues(t, lost.from, r.PhysicalOffset)
			require.Equal(t, testStartMs+50_000, r.StoreTimestampMs, "that of the record in front of it")
			// Its queue tells whose it was, the record's own header, or the queue offset that is missing.
			require.Equal(t, lost.key, messages.QueueKey{Topic: string(r.Topic), QueueID: r.QueueID})
			require.Equal(t, lost.at, r.QueueOffset)
			c := contentOf(t, s)
			c.requirePuts(t, without(w.puts, []int{51}))
			require.NoError(t, s.Close())
		}
	}
}

// TestAHoleKeepsFurtherQueues: what stands for lost messages of several queues belongs to each of them, first to the one that is no light
// queue, so that recovering again cuts none.
func TestAHoleKeepsFurtherQueues(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	for i := range 10 {
		m := w.message(messages.QueueKey{Topic: "T", QueueID: 2}, strings.Repeat("x", i))
		m.Properties = m.Properties.With(messages.PropertyMultiDispatch, "%LMQ%b,%LMQ%a,A").
			With(messages.PropertyMultiQueueOffset, fmt.Sprintf("%d,%d,%d", i, i, i))
		w.append(m)
	}
	w.put("B", 0, "behind them")
	p := testParams()
	p.MultiDispatch = true
	reopen := func() (content, store.Report) {
		s, err := store.Open(disk, p, testOptions())
		require.NoError(t, err)
		c, report := contentOf(t, s), s.Report
		require.NoError(t, s.Close()) // as a kill does
		return c, report
	}
	whole, _ := reopen()
	require.Len(t, whole.Queues, 5)
	lost := w.puts[7]
	patchLog(t, disk, lost.from, zeroBytes(w.puts[9].to-lost.from))
	first, report := reopen()
	require.Contains(t, events(report), store.ClosedHole)
	require.Equal(t, whole.Queues, first.Queues)
	r, _, err := record.Parse(fixture.ReadFile(t, disk, segmentPath(lost.from))[lost.from%testSegment:], true)
	require.NoError(t, err)
	require.True(t, r.Lost())
	require.NotContains(t, string(r.Topic), messages.LMQTopicPrefix)
	second, report := reopen()
	require.Equal(t, first, second)
	require.Empty(t, report.Plan.Queues)
}

// TestAHoleStaysOpenWithoutACopy: nothing is written over what could not be copied.
func TestAHoleStaysOpenWithoutACopy(t *testing.T) {
	disk, w := killed(t, 100)
	patchLog(t, disk, w.puts[51].from, zeroBytes(60))
	p := testParams()
	p.QuarantineBytes = 10
	before := tree(t, disk, "s/commitlog")
	s, err := store.Open(disk, p, testOptions())
	require.NoError(t, err)
	require.Contains(t, events(s.Report), store.NotKept)
	require.NotContains(t, events(s.Report), store.ClosedHole)
	c := contentOf(t, s)
	c.requirePuts(t, without(w.puts, []int{51}))
	require.NoError(t, s.Close())
	require.Equal(t, before, tree(t, disk, "s/commitlog"))
}

// TestDamageWithoutQueues: also when no queue names the records behind damage they are found, by the chain that they are
// (spec/store.md §16, W3).
func TestDamageWithoutQueues(t *testing.T) {
	for name, harm := range map[string][]byte{"size": {0, 0, 1}, "all of the header": zeroBytes(80), "body": nil} {
		for _, i := range []int{3, 50, 97} {
			disk, w := killed(t, 100)
			if at := w.puts[i].from; harm != nil {
				patchLog(t, disk, at, harm)
			} else {
				patchLog(t, disk, at+88, []byte{^w.puts[i].body[0]})
			}
			removeTree(t, disk, "s/consumequeue")
			c, _ := recovered(t, disk)
			require.Len(t, c.Bodies, 99, "%s of %d", name, i)
			c.requirePuts(t, without(w.puts, []int{i}))
		}
	}
}

// TestRecordInNoQueueBehindDamage: what no queue names is found by the damaged record's own length.
func TestRecordInNoQueueBehindDamage(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.fill(10)
	damaged := w.put("A", 0, "damaged")
	m := w.message(messages.QueueKey{Topic: "A"}, "prepared")
	m.SysFlag = messages.SysFlagTransactionPrepared
	prepared := w.append(m)
	w.next[m.Queue()]--
	w.fill(10)
	require.NoError(t, open(t, disk).CloseClean())
	patchLog(t, disk, damaged.from+88, []byte("D"))
	c, _ := recovered(t, disk)
	require.Equal(t, "prepared", c.Bodies[messages.PhysicalOffset(prepared.from)])
	require.Equal(t, []store.Span{{From: messages.PhysicalOffset(damaged.from), To: messages.PhysicalOffset(damaged.to)}}, c.Holes)
}

func TestNewerVersionIsRefused(t *testing.T) {
	disk, w := closed(t, 20)
	patchLog(t, disk, w.pos, binary.BigEndian.AppendUint32([]byte{0, 0, 0, 200}, record.MagicV2+4))
	before := tree(t, disk, "s")
	_, err := store.Open(disk, testParams(), testOptions())
	require.ErrorIs(t, err, store.ErrNewerLog)
	require.Equal(t, before, tree(t, disk, "s"))
}

// TestMissingCommitLog: a log that is gone is refused; once that is meant, queues and index are worth nothing.
func TestMissingCommitLog(t *testing.T) {
	disk, _ := closed(t, 50)
	removeTree(t, disk, "s/commitlog")
	before := tree(t, disk, "s", "/lock")
	_, err := store.Open(disk, testParams(), testOptions())
	require.ErrorIs(t, err, store.ErrNoLog)
	require.ErrorContains(t, err, "s/commitlog")
	require.Equal(t, before, tree(t, disk, "s", "/lock"), "whoever forgot to mount a disk has lost nothing")

	opt := testOptions()
	opt.LogIsGone = true
	s, err := store.Open(disk, testParams(), opt)
	require.NoError(t, err)
	c, report := contentOf(t, s), s.Report
	require.NoError(t, s.Close())
	require.Contains(t, events(report), store.EmptyLog)
	require.Equal(t, content{
		Min: -1, Bodies: map[messages.PhysicalOffset]string{}, Queues: map[messages.QueueKey]queueContent{},
		Keys: map[string][]messages.PhysicalOffset{}, Next: map[messages.QueueKey]messages.QueueOffset{},
	}, c)
	require.Contains(t, events(report), store.DroppedQueue)
	require.Contains(t, events(report), store.CutIndex)
}

// TestExpiredSegments: the cleaner has deleted the first segments; queues begin with what the log still has.
func TestExpiredSegments(t *testing.T) {
	for _, drop := range []string{"", "s/consumequeue", "s/index"} {
		disk, w := closed(t, 100)
		for at := int64(0); at < 2*testSegment; at += testSegment {
			require.NoError(t, disk.Remove(segmentPath(at)))
		}
		if drop != "" {
			removeTree(t, disk, drop)
		}
		s := open(t, disk)
		c := contentOf(t, s)
		require.Equal(t, messages.PhysicalOffset(2*testSegment), c.Min)
		kept := w.puts
		for kept[0].from < 2*testSegment {
			kept = kept[1:]
		}
		require.Len(t, c.Bodies, len(kept))
		c.requirePuts(t, kept)
		require.Equal(t, w.next, s.QueueOffsets)
		for _, q := range c.Queues {
			require.GreaterOrEqual(t, int64(q.Units[0].PhysicalOffset), int64(2*testSegment))
		}
		require.NoError(t, s.Close())
	}
}

// TestCheckpointAheadOfTheQueues (spec/store.md §16, W18): recovery believes the checkpoint only as far as the queues hold.
func TestCheckpointAheadOfTheQueues(t *testing.T) {
	disk, w := killed(t, 100)
	require.NoError(t, checkpoint.Save(disk, "s/checkpoint", checkpoint.Values{PhysicMs: 1 << 42, LogicsMs: 1 << 42, IndexMs: 1 << 42}))
	overwrite(t, disk, queueFile("A", 0), 3*20, zeroBytes(17*20))
	removeTree(t, disk, "s/consumequeue/B/0")
	removeTree(t, disk, "s/index")
	c, report := recovered(t, disk)
	require.Positive(t, report.Plan.ScanFrom)
	require.Zero(t, report.Plan.QueuesFrom)
	c.requirePuts(t, w.puts)
	v, err := checkpoint.Load(disk, "s/checkpoint")
	require.NoError(t, err)
	last := testStartMs + 99_000
	require.Equal(t, checkpoint.Values{PhysicMs: last, LogicsMs: last, IndexMs: last}, v)
}

// TestCheckpointBoundsTheScan (L38): what is vouched for is not read again.
func TestCheckpointBoundsTheScan(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.fill(100)
	w.intervalMs = 100_000
	w.fill(100)
	require.NoError(t, open(t, disk).CloseClean())
	createFile(t, disk, "s/abort", 0)
	_, report := recovered(t, disk)
	end := w.pos - w.pos%testSegment
	require.Equal(t, messages.PhysicalOffset(end-2*testSegment), report.Plan.ScanFrom)

	at := w.puts[120]
	stored := testStartMs + 120*w.intervalMs
	require.NoError(t, checkpoint.Save(disk, "s/checkpoint", checkpoint.Values{PhysicMs: stored, LogicsMs: stored, IndexMs: stored}))
	require.Less(t, at.from, end-2*testSegment)
	c, report := recovered(t, disk)
	c.requirePuts(t, w.puts)
	for _, from := range []messages.PhysicalOffset{report.Plan.ScanFrom, report.Plan.Index.Cut} {
		require.Positive(t, from)
		require.Less(t, int64(from), at.from)
		require.Greater(t, int64(from), at.from-testSegment)
	}
}

// TestAUnitWithAWrongTagIsMended: one that stands on two pages of which one is lost keeps its place, but not its tag.
func TestAUnitWithAWrongTagIsMended(t *testing.T) {
	disk, _ := killed(t, 30)
	tags := func(disk vfs.Disk) map[messages.QueueKey]consumequeue.Unit {
		s := open(t, disk)
		last := map[messages.QueueKey]consumequeue.Unit{}
		s.Queues.Each(func(key messages.QueueKey, q *consumequeue.Queue) {
			unit := make([]consumequeue.Unit, 1)
			_, err := q.Read(q.Max()-1, unit)
			require.NoError(t, err)
			last[key] = unit[0]
			if unit[0].TagsCode != 0 {
				at := int64(q.Max()-1)*consumequeue.UnitBytes + 12
				overwrite(t, disk, queueFile(key.Topic, int(key.QueueID)), at, make([]byte, 8))
			}
		})
		require.NoError(t, s.Close())
		return last
	}
	before := tags(disk)
	require.Equal(t, before, tags(disk))
}

// TestHoleInAQueueInFrontOfTheScan: after a power cut a page may be missing anywhere in a queue.
func TestHoleInAQueueInFrontOfTheScan(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.intervalMs = 100_000
	for range 50 {
		w.put("Old", 0, "old")
	}
	w.fill(150)
	require.NoError(t, open(t, disk).CloseClean())
	createFile(t, disk, "s/abort", 0)
	overwrite(t, disk, "s/consumequeue/Old/0/"+segments.Name(testQueue), 5*20, zeroBytes(3*20))
	c, report := recovered(t, disk)
	require.Greater(t, int64(report.Plan.ScanFrom), w.puts[50].from)
	c.requirePuts(t, w.puts)
}

// oldQueue is a clean store in which one queue has messages at the log's beginning only, far in front of what is scanned.
func oldQueue(t *testing.T) (*memfs.Disk, *logWriter) {
	t.Helper()
	disk := memfs.New()
	w := newLogWriter(t, disk)
	for range 12 {
		w.put("Old", 0, "old")
	}
	w.fill(150)
	require.NoError(t, open(t, disk).CloseClean())
	_, report := recovered(t, disk.Clone())
	require.Greater(t, int64(report.Plan.ScanFrom), w.puts[20].to)
	return disk, w
}

func TestDamageOfAQueueThatTheScanDoesNotMeet(t *testing.T) {
	for name, damage := range map[string]func(*memfs.Disk){
		"short": func(d *memfs.Disk) { truncateFile(t, d, queueFile("Old", 0), 133) },
		"junk behind a hole": func(d *memfs.Disk) {
			overwrite(t, d, queueFile("Old", 0), 4*20, zeroBytes(20))
		},
		"last unit with a huge size": func(d *memfs.Disk) {
			overwrite(t, d, queueFile("Old", 0), 11*20+8, []byte{0x10})
		},
	} {
		disk, w := oldQueue(t)
		damage(disk)
		s := open(t, disk)
		c := contentOf(t, s)
		c.requirePuts(t, w.puts)
		require.Equal(t, w.next, s.QueueOffsets, name)
		require.NoError(t, s.Close())
	}
}

func TestNothingSoundInTheLastSegments(t *testing.T) {
	disk, w := closed(t, 150)
	last := w.pos - w.pos%testSegment
	for at := last - 2*testSegment; at <= last; at += testSegment {
		patchLog(t, disk, at, []byte(strings.Repeat("garbage!", testSegment/8)))
	}
	kept := 0
	for w.puts[kept].to <= last-2*testSegment {
		kept++
	}
	s := open(t, disk)
	c := contentOf(t, s)
	c.requirePuts(t, w.puts[:kept])
	require.Len(t, c.Bodies, kept)
	require.Equal(t, testStartMs+int64(kept-1)*1000, s.Log.StoreTimestampMs())
	require.NoError(t, s.Close())
}

func TestTornBlankWithoutQueues(t *testing.T) {
	disk, w := killed(t, 100)
	damages["torn blank"](t, disk, w)
	removeTree(t, disk, "s/consumequeue")
	c, _ := recovered(t, disk)
	c.requirePuts(t, w.puts)
}

// TestOpenMakesTheLogDurable: what a killed process has left in the page cache counts as flushed once the store is open.
func TestOpenMakesTheLogDurable(t *testing.T) {
	disk, w := killed(t, 30)
	f, err := disk.Open(segmentPath(w.pos), true)
	require.NoError(t, err)
	m := w.message(messages.QueueKey{Topic: "A"}, "in the page cache")
	raw, err := record.Append(nil, &m)
	require.NoError(t, err)
	record.SetPlace(raw, w.next[m.Queue()], messages.PhysicalOffset(w.pos), testStartMs)
	_, err = f.WriteAt(raw, w.pos%testSegment)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	s := open(t, disk)
	for seed := range uint64(10) {
		c, _ := recovered(t, disk.Crash(seed))
		require.Equal(t, "in the page cache", c.Bodies[messages.PhysicalOffset(w.pos)], "seed %d", seed)
	}
	require.NoError(t, s.Close())
}

// TestUnitsOfALostRunAreCleared: a power cut has kept a page of a queue far behind a hole.
func TestUnitsOfALostRunAreCleared(t *testing.T) {
	disk := memfs.New()
	w := newLogWriter(t, disk)
	w.fill(30)
	p := testParams()
	p.ConsumeQueueFileBytes = 1000 * 20
	s, err := store.Open(disk, p, testOptions())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	overwrite(t, disk, queueFile("A", 0), 600*20, append(unitBytes(w.pos, 100), unitBytes(w.pos+100, 100)...))
	s, err = store.Open(disk, p, testOptions())
	require.NoError(t, err)
	require.NoError(t, s.CloseClean())
	b := fixture.ReadFile(t, disk, queueFile("A", 0))
	require.Len(t, b, 1000*20)
	require.Equal(t, zeroBytes(995*20), b[5*20:])
}

// TestNothingIsIndexedTwice: however often a store is killed, each key of a record has one entry.
func TestNothingIsIndexedTwice(t *testing.T) {
	disk, _ := killed(t, 100)
	for range 3 {
		recovered(t, disk)
		entries := 0
		for _, name := range indexFiles(t, disk) {
			entries += int(binary.BigEndian.Uint32(fixture.ReadFile(t, disk, name)[36:])) - 1
		}
		require.Equal(t, 3*100, entries)
	}
}

// The last message of a queue is damaged, and the queue lacks its unit: what is written in its place keeps its queue offset, at once,
// or the next message would get it too.
func TestALostMessageAtTheEndOfAQueueKeepsItsPlace(t *testing.T) {
	for _, fresh := range []bool{true, false} {
		disk, w := killed(t, 20)
		topic := "A"
		if fresh {
			topic = "Fresh"
		}
		z := w.put(topic, 0, "to be lost")
		w.put("B", 1, "behind it")
		patchLog(t, disk, z.from+88, []byte("TORN"))
		first, report := recovered(t, disk)
		require.Contains(t, events(report), store.ClosedHole)
		require.Equal(t, z.at+1, first.Queues[z.key].Max)
		require.Equal(t, z.at+1, first.Next[z.key])
		again, _ := recovered(t, disk)
		require.Equal(t, first, again)
	}
}
