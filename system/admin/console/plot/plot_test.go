package plot

import (
	"encoding/json"
	"html"
	"math"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestNumbersAreShort(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		v    float64
		want string
	}{
		{PerSecond, 0, "0/s"}, {PerSecond, 0.25, "0.25/s"}, {PerSecond, 1234, "1.23 k/s"}, {PerSecond, 999.9, "1.00 k/s"}, {Count, 12, "12"},
		{Bytes, 1023, "1023 B"}, {Bytes, 1536, "1.50 KiB"}, {BytesRate, 3 << 20, "3 MiB/s"}, {Seconds, 0.0000425, "42.5 µs"}, {Seconds, 0.0025, "2.50 ms"},
		{Seconds, 12, "12 s"}, {Count, math.NaN(), "–"}, {Bytes, 1 << 60, "1024 PiB"},
	} {
		got := c.unit.Text(c.v)
		require.Equal(t, c.want, got)
	}
}

func TestTheScaleIsARoundNumberAboveAll(t *testing.T) {
	for _, c := range []struct {
		unit    Unit
		v, want float64
	}{{Count, 0, 1}, {Count, 7, 10}, {Count, 201, 250}, {Count, 250, 250}, {Seconds, 0.0013, 0.002}, {Bytes, 3000, 5 * 1024}, {Bytes, 900, 1000}} {
		require.InDelta(t, c.want, Plot{Unit: c.unit, Lines: []Line{{Values: []float64{c.v}}}}.Top(), c.want/1e6)
	}
}

// TestGapsAreNotDrawn, and the script gets the numbers as JSON, whatever they are.
func TestGapsAreNotDrawn(t *testing.T) {
	p := Plot{Unit: Count, Span: time.Minute, End: time.UnixMilli(5000), Lines: []Line{
		{Name: `a"<b>`, Values: []float64{0, 10, math.NaN(), 5}}, {Name: "none"},
	}}
	line, area := p.path(p.Lines[0])
	require.Equal(t, "M0.0 100.0L200.0 0.0M600.0 50.0", line)
	require.Equal(t, "M0.0 100.0L200.0 0.0L200.0 100.0L0.0 100.0ZM600.0 50.0L600.0 100.0L600.0 100.0Z", area)
	svg := string(p.SVG())
	require.NotContains(t, svg, "<b>")
	data := regexp.MustCompile(`data-plot="([^"]*)"`).FindStringSubmatch(svg)[1]
	var got struct {
		Series []struct {
			Name   string
			Values []*float64
		}
		End int64
	}
	require.NoError(t, json.Unmarshal([]byte(html.UnescapeString(data)), &got))
	require.Equal(t, `a"<b>`, got.Series[0].Name)
	require.Nil(t, got.Series[0].Values[2])
	require.EqualValues(t, 5000, got.End)
	require.True(t, math.IsNaN(p.Lines[1].Last()))
}
