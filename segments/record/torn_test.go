package record_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

// Whichever sectors of a record reach the disk, what is left is the record or none: also in topic and properties, which have
// no checksum.
func TestASectorThatIsMissingIsFound(t *testing.T) {
	for _, m := range []messages.Message{
		{Topic: strings.Repeat("t", 127), Body: []byte("body"), Properties: "KEYS\x01k1 k2\x02UNIQ_KEY\x01u1\x02TAGS\x01t"},
		{Topic: "T", Properties: messages.Properties("a\x01" + strings.Repeat("v", 1500) + "\x02b\x01c")},
		{Topic: strings.Repeat("t", 127)},
		{Topic: "T", Body: []byte("b"), Properties: "a\x01ends in zeros\x00\x00\x00"},
	} {
		raw, err := record.Append(nil, &m)
		require.NoError(t, err)
		for place := range messages.PhysicalOffset(512) {
			record.SetPlace(raw, 3, place, 77)
			_, _, err = record.Parse(raw, true)
			require.NoError(t, err, "whole, at %d", place)
			for sector := 512 - int(place); sector < len(raw); sector += 512 {
				torn := bytes.Clone(raw)
				clear(torn[sector:min(sector+512, len(torn))])
				if bytes.Equal(torn, raw) {
					continue // the bytes lost were zeros
				}
				_, _, err = record.Parse(torn, true)
				require.Error(t, err, "at %d, without the sector from %d", place, sector)
			}
		}
	}
}

func TestPropertiesThatEndInZeroAreClosed(t *testing.T) {
	m := messages.Message{Topic: "T", Body: []byte("b"), Properties: "a\x01v\x00"}
	raw, err := record.Append(nil, &m)
	require.NoError(t, err)
	r, _, err := record.Parse(raw, true)
	require.NoError(t, err)
	require.Equal(t, "a\x01v\x00\x02", string(r.Properties))
	got, _ := messages.ViewProperties(r.Properties).Get("a")
	require.Equal(t, "v\x00", got)

	m.Properties = messages.Properties("a\x01" + strings.Repeat("v", messages.MaxPropertiesBytes-3) + "\x00")
	raw, err = record.Append(nil, &m)
	require.NoError(t, err)
	r, _, err = record.Parse(raw, true)
	require.NoError(t, err)
	require.Equal(t, string(m.Properties), string(r.Properties), "no room for a separator")
}
