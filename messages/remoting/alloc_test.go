//go:build !race

// The race detector makes sync.Pool drop things at random, so allocations are counted without it.

package remoting

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/frames"
)

// The hot paths allocate what they return and nothing else: command, header copy, ext fields, unescaped properties, body.
func TestAllocationsOfTheHotPaths(t *testing.T) {
	source := bytes.NewReader(nil)
	r := bufio.NewReader(source)
	readTyped := func(frame []byte, decode func(c *Command) error) float64 {
		return testing.AllocsPerRun(100, func() {
			source.Reset(frame)
			r.Reset(source)
			c, err := ReadCommand(r, Limits{})
			if err != nil || decode(c) != nil {
				t.Error("recorded frame refused")
			}
		})
	}
	send := func(c *Command) error { _, err := DecodeSend(c); return err }
	pull := func(c *Command) error { var h PullMessageHeader; return FromExt(c.ExtFields, &h) }
	require.LessOrEqual(t, readTyped(frames.Get("send-v2").Request.Bytes, send), 5.0)
	require.LessOrEqual(t, readTyped(frames.Get("send-v2-binary").Request.Bytes, send), 4.0)
	require.LessOrEqual(t, readTyped(frames.Get("pull-found").Request.Bytes, pull), 3.0)

	c := &Command{Remark: "FOUND", ExtFields: ToExt(&PullMessageAnswer{NextBeginOffset: 1 << 40})}
	out := make([]byte, 0, 1024)
	for _, c.Binary = range []bool{false, true} {
		require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = c.AppendHeader(out, 4096) }))
	}
}

// A send and a pull are decoded, and their answers framed, without an allocation.
func TestViewsAndTypedAnswersDoNotAllocate(t *testing.T) {
	var v View
	var pull PullMessageHeader
	for name, decode := range map[string]func(*Command) error{
		"send-v2":        func(c *Command) error { _, err := DecodeSend(c); return err },
		"send-v2-binary": func(c *Command) error { _, err := DecodeSend(c); return err },
		"pull-found":     func(c *Command) error { return FromExt(c.ExtFields, &pull) },
	} {
		frame := frames.Get(name).Request.Bytes
		require.Zero(t, testing.AllocsPerRun(100, func() {
			c, err := v.Command(frame, Limits{})
			if err != nil || decode(c) != nil {
				t.Error("recorded frame refused")
			}
		}), name)
	}
	h := &SendMessageAnswer{MsgID: "7F00000100002A9F0000000000000000", QueueOffset: 1 << 40}
	out := make([]byte, 0, 1024)
	for _, isBinary := range []bool{false, true} {
		require.Zero(t, testing.AllocsPerRun(100, func() {
			c := Command{Remark: "FOUND", Binary: isBinary}
			_, _ = c.AppendTyped(out, h, 4096)
		}))
	}
}
