package reput

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/record"
)

// dispatchAll dispatches a log from its beginning.
func dispatchAll(t *testing.T, w *logWriter) ([]messages.DispatchRequest, []messages.LogDamage) {
	t.Helper()
	n := newNode(t)
	a := n.spawn(newCollector())
	var damage []messages.LogDamage
	p := n.spawn(New(Config{Log: w.log, Builders: []Builder{{Peer: a}}, OnDamage: func(d messages.LogDamage) {
		damage = append(damage, d) // read after the answer to AwaitDispatched
	}}))
	_, err := awaitDispatched(t, p, w.log.End())
	require.NoError(t, err)
	return normal(collectedBy(t, a)), damage
}

// without returns what dispatching brings when the records at some indexes are lost.
func without(w *logWriter, lost ...int) []messages.DispatchRequest {
	var keep []messages.DispatchRequest
	for i, r := range w.want {
		gone := false
		for _, l := range lost {
			gone = gone || l == i
		}
		if !gone {
			keep = append(keep, r)
		}
	}
	return normal(keep)
}

func TestDamageCostsOnlyTheDamagedRecord(t *testing.T) {
	field := func(at int, v ...byte) func([]byte) { return func(b []byte) { copy(b[at:], v) } }
	damages := map[string]struct {
		harm func(rec []byte)
		err  error
	}{
		"magic":           {field(4, 0x12), record.ErrBadMagic},
		"newer version":   {field(4, 0xDA, 0xA3, 0x20, 0xAF), record.ErrNewerVersion},
		"size zero":       {field(0, 0, 0, 0, 0), record.ErrBadSize},
		"size negative":   {field(0, 0xFF), record.ErrBadSize},
		"size too large":  {field(2, 0x7F), record.ErrTruncated},
		"size a bit less": {func(b []byte) { b[3]-- }, record.ErrBadLengths},
		"body length":     {func(b []byte) { b[84+3]++ }, record.ErrBadLengths},
		"own offset":      {func(b []byte) { b[28+7] ^= 1 }, ErrMisplaced},
		"zeros":           {func(b []byte) { clear(b) }, record.ErrUnallocated},
	}
	places := map[string]int{"first": 0, "in the middle": 70, "last of a segment": -1, "last of the log": -2}
	for name, c := range damages {
		for place, at := range places {
			t.Run(name+" "+place, func(t *testing.T) {
				w := newLog(t, 8192)
				w.fill(130)
				switch at {
				case -1:
					for at = 0; w.want[at+1].PhysicalOffset < 8192; at++ {
					}
				case -2:
					at = len(w.want) - 1
				}
				r := w.want[at]
				c.harm(w.bytes(r.PhysicalOffset)[:r.SizeBytes])
				got, damage := dispatchAll(t, w)
				require.Equal(t, without(w, at), got)
				require.Len(t, damage, 1)
				require.Equal(t, r.PhysicalOffset, damage[0].From)
				require.GreaterOrEqual(t, damage[0].To, r.End(), "at the end of a segment its blank goes too")
				require.ErrorIs(t, damage[0].Err, c.err)
				var where *segments.CorruptionError
				require.ErrorAs(t, damage[0].Err, &where)
				require.Equal(t, int64(r.PhysicalOffset)%8192, where.Offset)
				require.Equal(t, path.Join(logDir, segments.Name(int64(r.PhysicalOffset)/8192*8192)), where.File)
			})
		}
	}
}

func TestRecordsBetweenTwoDamagesAreNotBelieved(t *testing.T) {
	w := newLog(t, 1<<20)
	w.fill(100)
	for _, i := range []int{20, 45} { // nothing vouches for what is between: a body may hold as many
		r := w.want[i]
		clear(w.bytes(r.PhysicalOffset)[:r.SizeBytes])
	}
	got, damage := dispatchAll(t, w)
	var lost []int
	for i := 20; i <= 45; i++ {
		lost = append(lost, i)
	}
	require.Equal(t, without(w, lost...), got)
	require.Len(t, damage, 1)
	require.Equal(t, w.want[46].PhysicalOffset, damage[0].To)
}

// forge returns a message whose body holds records that name the place at which they will stand.
func forge(t *testing.T, w *logWriter, records, trailing int) messages.Message {
	t.Helper()
	envelope := messages.Message{Topic: "Open", Properties: "TAGS\x01x"}
	bodyAt := messages.PhysicalOffset(w.seg.Start()+w.pos) + 88
	for i := range records {
		inner := messages.Message{Topic: "Secret", Body: []byte("forged"), QueueID: 1}
		from := len(envelope.Body)
		var err error
		envelope.Body, err = record.Append(envelope.Body, &inner)
		require.NoError(t, err)
		record.SetPlace(envelope.Body[from:], messages.QueueOffset(i), bodyAt+messages.PhysicalOffset(from), 1)
	}
	envelope.Body = append(envelope.Body, make([]byte, trailing)...)
	return envelope
}

func TestAForgedRecordInABodyIsRefused(t *testing.T) {
	for _, records := range []int{1, 3, 40} {
		for _, harm := range []string{"size", "magic", "all of the header"} {
			t.Run(fmt.Sprintf("%d records, %s", records, harm), func(t *testing.T) {
				w := newLog(t, 1<<20)
				w.fill(10)
				r := w.put(forge(t, w, records, 40))
				w.fill(50)
				b := w.bytes(r.PhysicalOffset)
				require.Equal(t, uint64(r.PhysicalOffset)+88, binary.BigEndian.Uint64(b[88+28:]), "the forgery names its place")
				switch harm {
				case "size":
					clear(b[:4])
				case "magic":
					clear(b[4:8])
				default:
					clear(b[:88])
				}
				got, damage := dispatchAll(t, w)
				require.Equal(t, without(w, 10), got)
				require.Len(t, damage, 1)
				require.Equal(t, r.End(), damage[0].To)
			})
		}
	}
}

func TestADamagedLogNeverBringsWhatWasNotPut(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		w := newLog(t, 4096)
		w.fill(60)
		for range 1 + rnd.IntN(4) {
			r := w.want[rnd.IntN(len(w.want))]
			b := w.bytes(r.PhysicalOffset)[:88+rnd.IntN(int(r.SizeBytes)-88)]
			from := rnd.IntN(44) // size, magic, …, own offset: what dispatching checks
			for i := range b[from:min(len(b), from+1+rnd.IntN(16))] {
				b[from+i] = byte(rnd.Uint32())
			}
		}
		c := cursor{log: w.log, report: func(messages.LogDamage) {}}
		known := map[messages.PhysicalOffset]int32{}
		for _, r := range w.want {
			known[r.PhysicalOffset] = r.SizeBytes
		}
		last := messages.PhysicalOffset(-1)
		for c.next(w.log.End()) {
			require.Equal(t, known[c.rec.PhysicalOffset], c.rec.Size)
			require.Greater(t, c.rec.PhysicalOffset, last)
			last = c.rec.PhysicalOffset
		}
		require.GreaterOrEqual(t, c.pos, w.log.End())
		c.close()
	}
}
