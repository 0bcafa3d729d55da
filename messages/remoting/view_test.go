package remoting

import (
	"bufio"
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/frames"
)

// A view tells what ReadCommand tells, of every recorded frame, one after the other with the same view.
func TestViewsTellWhatReadersTell(t *testing.T) {
	var v View
	each(t, func(t *testing.T, recorded *frames.Frame) {
		frame := bytes.Clone(recorded.Bytes)
		want, err := read(frame)
		require.NoError(t, err)
		got, err := v.Command(frame, Limits{})
		require.NoError(t, err)
		own := got.Own()
		for i := range frame { // nothing of the copy lies in the frame, or in the view
			frame[i] = 0xee
		}
		_, err = v.Command(frames.Get("send-v2").Request.Bytes, Limits{})
		require.NoError(t, err)
		want.Body, own.Body = append([]byte{}, want.Body...), append([]byte{}, own.Body...)
		require.Equal(t, want, own)
	})
}

func TestViewsRefuseWhatReadersRefuse(t *testing.T) {
	frame := frames.Get("send-v2").Request.Bytes
	var v View
	for n := range len(frame) {
		_, err := v.Command(frame[:n], Limits{})
		require.ErrorIs(t, err, ErrBadFrame, "cut off at %d", n)
	}
	_, err := v.Command(append(bytes.Clone(frame), 0), Limits{})
	require.ErrorIs(t, err, ErrBadFrame)
	_, err = v.Command(frame, Limits{FrameBytes: len(frame) - lengthBytes - 1})
	require.ErrorIs(t, err, ErrFrameTooLarge)
	_, err = v.Command(frame, Limits{ExtFields: 3})
	require.ErrorIs(t, err, ErrBadHeader)
	c, err := v.Command(frame, Limits{FrameBytes: len(frame) - lengthBytes})
	require.NoError(t, err, "a view goes on after an error")
	require.Equal(t, RequestSendMessageV2, c.Code)
}

// What one frame has made a view take is not kept for ever.
func TestViewsStaySmall(t *testing.T) {
	big := &Command{Remark: "\x01" + strings.Repeat("r", 2*mostViewText)}
	for range 100 {
		big.ExtFields = append(big.ExtFields, Pair{strings.Repeat("n", len(big.ExtFields)), "v"})
	}
	frame, err := big.Append(nil)
	require.NoError(t, err)
	var v View
	c, err := v.Command(frame, Limits{})
	require.NoError(t, err)
	require.Equal(t, big.Remark, c.Remark)
	require.Equal(t, big.ExtFields, c.ExtFields)
	require.Nil(t, v.ext)
	require.Nil(t, v.text)
}

// A strings with escapes stays what it is when the memory for further ones moves.
func TestUnescapedStringsStay(t *testing.T) {
	want := &Command{ExtFields: Ext{}}
	for i := range 40 {
		want.ExtFields = append(want.ExtFields, Pair{strings.Repeat("n", i), strings.Repeat("\x01\x02\"", 5*i)})
	}
	frame, err := want.Append(nil)
	require.NoError(t, err)
	var v View
	for range 2 {
		c, err := v.Command(frame, Limits{})
		require.NoError(t, err)
		require.Equal(t, want.ExtFields, c.ExtFields)
	}
}

func TestTypedFieldsAreThoseOfTheList(t *testing.T) {
	for _, h := range []Header{
		&SendMessageAnswer{MsgID: "\x01\"id", QueueID: -3, QueueOffset: 1 << 60, TransactionID: "ü"},
		&PullMessageAnswer{NextBeginOffset: -1 << 63, MaxOffset: 1<<63 - 1}, &OffsetAnswer{}, &QueryMessageHeader{},
	} {
		for _, isBinary := range []bool{false, true} {
			c := &Command{Opaque: 7, Remark: "r", Binary: isBinary, ExtFields: ToExt(h)}
			list, err := c.AppendHeader([]byte("before"), 5)
			require.NoError(t, err)
			c.ExtFields = nil
			typed, err := c.AppendTyped([]byte("before"), h, 5)
			require.NoError(t, err)
			require.Equal(t, list, typed)
		}
	}
}

func BenchmarkView(b *testing.B) {
	for name, frame := range map[string][]byte{
		"codec=json": frames.Get("send-v2").Request.Bytes, "codec=binary": frames.Get("send-v2-binary").Request.Bytes,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var v View
			for b.Loop() {
				c, err := v.Command(frame, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := DecodeSend(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzView(f *testing.F) {
	for _, c := range frames.All() {
		for _, frame := range c.Both() {
			f.Add(frame.Bytes)
		}
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		var v View
		got, err := v.Command(frame, Limits{})
		r := bufio.NewReader(bytes.NewReader(frame))
		want, wantErr := ReadCommand(r, Limits{})
		if _, more := r.Peek(1); wantErr != nil || more == nil {
			require.Error(t, err)
			return
		}
		require.NoError(t, err)
		own := got.Own()
		want.Body, own.Body = append([]byte{}, want.Body...), append([]byte{}, own.Body...)
		require.Equal(t, want, own)
	})
}
