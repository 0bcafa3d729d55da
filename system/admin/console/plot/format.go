package plot

import (
	"math"
	"strconv"
)

// Text writes a number in its unit, short enough for a tile: 1.23 M/s, 4.5 MiB, 2.5 ms.
func (u Unit) Text(v float64) string {
	switch {
	case math.IsNaN(v):
		return "–"
	case u == Bytes || u == BytesRate:
		return scaled(v, 1024, []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB"}) + string(u[1:])
	case u == Seconds:
		return seconds(v)
	}
	return scaled(v, 1000, []string{"", "k", "M", "G", "T"}) + string(u)
}

// scaled writes a number with three digits and the prefix that makes it handy.
func scaled(v, base float64, units []string) string {
	i := 0
	for ; math.Abs(v) >= base*0.9995 && i < len(units)-1; i++ {
		v /= base
	}
	text := digits(v)
	if units[i] != "" {
		text += " " + units[i]
	}
	return text
}

func seconds(v float64) string {
	const milli, micro = 1e-3, 1e-6
	switch {
	case v == 0:
		return "0 ms"
	case v < milli:
		return digits(v/micro) + " µs"
	case v < 1:
		return digits(v/milli) + " ms"
	}
	return digits(v) + " s"
}

// digits writes up to three significant digits.
func digits(v float64) string {
	places := 0
	switch a := math.Abs(v); {
	case a == math.Trunc(a) || a >= 100:
	case a >= 10:
		places = 1
	default:
		places = 2
	}
	return strconv.FormatFloat(v, 'f', places, 64)
}
