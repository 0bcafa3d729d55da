package record_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

const logAt = 1_000_000 // where the bytes of these tests begin in the log

// records returns records that follow one another from a place on, each the next one of one of two queues.
func records(t testing.TB, at messages.PhysicalOffset, bodies ...string) []byte {
	t.Helper()
	var b []byte
	for i, body := range bodies {
		from := len(b)
		var err error
		b, err = record.Append(b, &messages.Message{Topic: "T", QueueID: int32(i % 2), Body: []byte(body)})
		require.NoError(t, err)
		record.SetPlace(b[from:], messages.QueueOffset(i/2), at+messages.PhysicalOffset(from), 1)
	}
	return b
}

func TestResyncBelievesAChainToAKnownEnd(t *testing.T) {
	junk := bytes.Repeat([]byte{7}, 200)
	good := records(t, logAt+200, "a", "b", "c", "d")
	end := logAt + 200 + messages.PhysicalOffset(len(good))
	blank := record.AppendBlank(nil, 100)
	zeros := make([]byte, 92)
	for name, c := range map[string]struct {
		behind     []byte
		segmentEnd messages.PhysicalOffset
		want       bool
	}{
		"the end of the bytes":              {nil, end + 500, true},
		"zeros":                             {zeros, end + 500, true},
		"a blank that fills the segment":    {append(blank, zeros...), end + 100, true},
		"a blank that fills something else": {append(blank, zeros...), end + 101, false},
		"a blank with something behind":     {append(blank, bytes.Repeat([]byte{1}, 92)...), end + 100, false},
		"a blank, more of the log behind":   {append(blank, zeros...), 0, false},
		"something else":                    {[]byte("something else"), end + 500, false},
	} {
		b := append(append(bytes.Clone(junk), good...), c.behind...)
		n, ok := record.Resync(b, logAt, c.segmentEnd)
		require.Equal(t, c.want, ok, name)
		if ok {
			require.Equal(t, 200, n, name)
		}
	}
}

func TestResyncWantsConsecutiveQueueOffsets(t *testing.T) {
	b := records(t, logAt+1, "a", "b", "c", "d", "e")
	n, ok := record.Resync(append([]byte{1}, b...), logAt, logAt+1<<20)
	require.True(t, ok)
	require.Equal(t, 1, n)
	third := 2 * (len(b) / 5)
	record.SetPlace(b[third:], 7, logAt+1+messages.PhysicalOffset(third), 1)
	n, ok = record.Resync(append([]byte{1}, b...), logAt, logAt+1<<20)
	require.True(t, ok)
	require.Equal(t, 1+2*third, n, "the fifth does not follow the third, nor the third the first")
}

// TestResyncRefusesForgedRecords: whatever a body holds, it is no record (spec/store.md §16, W3).
func TestResyncRefusesForgedRecords(t *testing.T) {
	const inBody = 88
	for _, n := range []int{1, 3, 40} {
		forged := records(t, logAt+inBody, make([]string, n)...)
		for _, padding := range []int{0, 1, 50, 4096} {
			carrier := records(t, logAt, string(forged)+string(make([]byte, padding)))
			follow := records(t, logAt+messages.PhysicalOffset(len(carrier)), "x", "y", "z")
			for _, harm := range []int{4, 8, 88} { // size, magic, all of the header
				b := append(bytes.Clone(carrier), follow...)
				clear(b[harm-min(harm, 4) : harm])
				if harm == inBody {
					clear(b[:harm])
				}
				at, ok := record.Resync(b, logAt, logAt+1<<20)
				require.True(t, ok)
				require.Equal(t, len(carrier), at, "%d forged, padding %d, harm %d", n, padding, harm)
			}
		}
		// The carrier is the last record and its second half was never written.
		torn := append(records(t, logAt, string(forged)+string(make([]byte, 5000))), make([]byte, 1000)...)
		clear(torn[inBody+len(forged):])
		_, ok := record.Resync(torn, logAt, logAt+1<<20)
		require.False(t, ok, "%d forged, torn", n)
	}
}

// TestResyncIsLinear: a body full of forged records is looked at once, not once for each of them.
func TestResyncIsLinear(t *testing.T) {
	forged := records(t, logAt+1, make([]string, 40_000)...)
	_, ok := record.Resync(append(append([]byte{1}, forged...), 1), logAt, logAt+1<<30)
	require.False(t, ok) // takes minutes otherwise
}

func FuzzResync(f *testing.F) {
	b := records(f, 1003, "body", "", "x")
	f.Add(append([]byte{1, 2, 3}, b...), int64(1000))
	f.Add(append(append([]byte{1, 2, 3}, b...), make([]byte, 20)...), int64(1000))
	f.Add([]byte{0xDA, 0xA3, 0x20, 0xA7}, int64(0))
	f.Add(b[:60], int64(1003))
	f.Fuzz(func(t *testing.T, b []byte, at int64) {
		if at < 0 || at > 1<<40 {
			return
		}
		n, ok := record.Resync(b, messages.PhysicalOffset(at), messages.PhysicalOffset(at)+1<<20)
		if !ok {
			return
		}
		require.Greater(t, n, 0)
		r, kind, err := record.Parse(b[n:], true)
		require.NoError(t, err)
		require.Equal(t, record.KindMessage, kind)
		require.Equal(t, at+int64(n), int64(r.PhysicalOffset))
	})
}
