package remoting

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheShortFormIsReadAsFieldsReadIt changes, drops and moves fields of sends.
func TestTheShortFormIsReadAsFieldsReadIt(t *testing.T) {
	values := []string{"", "0", "7", "-1", "-2147483648", "2147483648", "9223372036854775808", "1720000000000", "true", "TRUE", "false", "x", " 1", "+1"}
	names := append(shortSendNames[:], "", "o", "z", "A", "aa", "\x01", "\xe1", "`")
	random := rand.New(rand.NewPCG(3, 4))
	read, refused := 0, 0
	for range 100_000 {
		ext := Ext{}
		for _, at := range random.Perm(len(names)) {
			switch name := names[at]; {
			case random.IntN(30) == 0:
			case random.IntN(20) == 0:
				ext = append(ext, Pair{name, values[random.IntN(len(values))]})
			default:
				ext = append(ext, Pair{name, "12"})
			}
		}
		want, f := SendMessageHeader{}, Fields{ext: ext}
		want.fields(&f, &shortSendNames)
		got, err := DecodeSend(&Command{Code: RequestSendMessageV2, ExtFields: ext})
		require.Equal(t, f.err, err, "%q", ext)
		require.Equal(t, want, got, "%q", ext)
		var short SendMessageHeader
		if short.readShort(ext) {
			read++
			require.NoError(t, f.err, "%q", ext)
			require.Equal(t, want, short, "%q", ext)
		} else {
			refused++
			require.Error(t, f.err, "%q", ext)
		}
	}
	require.Greater(t, read, 10_000)
	require.Greater(t, refused, 10_000)
}

func TestTheAnswerToASendIsWrittenAsFieldsWriteIt(t *testing.T) {
	texts := []string{"", "7F0000010000271F0000000000000000", "a,b", "it\"s\\\n", "\xff é 名", strings.Repeat("0123456789ABCDEF,", 64)}
	random := rand.New(rand.NewPCG(5, 6))
	text := func() string { return texts[random.IntN(len(texts))] }
	for range 10_000 {
		h := SendMessageAnswer{
			MsgID: text(), QueueID: int32(random.Uint32()), QueueOffset: int64(random.Uint64()) >> random.IntN(64), TransactionID: text(), MsgRegion: text(),
			TraceOn: random.IntN(2) == 0,
		}
		f := Fields{encoding: true, wire: []byte{}, first: true, typed: true}
		h.Fields(&f)
		require.Equal(t, string(f.wire), string(h.appendJSON(nil)))
		c := Command{Code: 3, Opaque: 9}
		require.Equal(t, string(f.wire), string(c.appendFields(nil, &h)))
	}
}
