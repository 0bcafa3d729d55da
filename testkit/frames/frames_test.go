package frames

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRecordedFramesAreWhole(t *testing.T) {
	cases := All()
	require.Len(t, cases, 111)
	names := map[string]bool{}
	for _, c := range cases {
		require.NotEmpty(t, c.Name)
		require.NotEmpty(t, c.Title, c.Name)
		require.False(t, names[c.Name], c.Name)
		names[c.Name] = true
		for _, f := range c.Both() {
			require.Equal(t, len(f.Bytes)-4, int(binary.BigEndian.Uint32(f.Bytes)), c.Name)
			require.Equal(t, f.HeaderBytes, int(binary.BigEndian.Uint32(f.Bytes[4:])&0xFFFFFF), c.Name)
			require.Equal(t, map[byte]string{0: "JSON", 1: "ROCKETMQ"}[f.Bytes[4]], f.Serialize, c.Name)
			require.Len(t, f.HeaderRaw(), f.HeaderBytes)
			require.Len(t, f.Body(), f.BodyBytes)
		}
	}
}

func TestGet(t *testing.T) {
	require.Equal(t, 310, Get("send-v2").Request.Header.Code)
	require.Nil(t, Get("send-v2-oneway").Response)
	require.Panics(t, func() { Get("no such case") })
}
