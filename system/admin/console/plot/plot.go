package plot

import (
	"encoding/json"
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"
)

// Unit says how the numbers of a plot are written.
type Unit string

// The units.
const (
	PerSecond Unit = "/s"
	Bytes     Unit = "B"
	BytesRate Unit = "B/s"
	Seconds   Unit = "s"
	Count     Unit = ""
)

// Plot is one chart: lines over a time that ends now.
type Plot struct {
	ID, Title string
	Unit      Unit
	Span      time.Duration
	End       time.Time
	Lines     []Line
}

// Line is one line of a plot. A value that is not a number is a gap.
type Line struct {
	Name   string
	Values []float64 // spread evenly over the span, the newest last
}

// Size of the drawing, in its own units; it is stretched to the room that there is.
const (
	width, height = 600, 100
)

// Last is the newest value of a line.
func (l Line) Last() float64 {
	if len(l.Values) == 0 {
		return math.NaN()
	}
	return l.Values[len(l.Values)-1]
}

// Top is the upper end of the scale: a round number that no value exceeds.
func (p Plot) Top() float64 {
	most := 0.0
	for _, l := range p.Lines {
		for _, v := range l.Values {
			if v > most {
				most = v
			}
		}
	}
	return round(most, p.Unit)
}

// round goes up to 1, 2, 2.5 or 5 times a power of ten (of 1024, for bytes); what is counted has a scale of at least 1.
func round(v float64, u Unit) float64 {
	least, base := 1.0, 1.0
	switch u {
	case Seconds:
		least = 1e-4
	case Bytes, BytesRate:
		for base*1024 <= v {
			base *= 1024
		}
	}
	if v <= least {
		return least * base
	}
	v /= base
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, step := range []float64{1, 2, 2.5, 5, 10} {
		if step*power*(1+1e-9) >= v {
			return step * power * base
		}
	}
	return v * base
}

// path is a line's way through the drawing; after a gap it begins again.
func (p Plot) path(l Line) (line, area string) {
	top, n := p.Top(), len(l.Values)
	var b, fill strings.Builder
	begun, begin, x := false, 0.0, 0.0
	end := func() {
		if begun {
			fill.WriteString("L" + num(x) + " " + num(height) + "L" + num(begin) + " " + num(height) + "Z")
		}
		begun = false
	}
	for i, v := range l.Values {
		if math.IsNaN(v) {
			end()
			continue
		}
		x = width
		if n > 1 {
			x = width * float64(i) / float64(n-1)
		}
		step := "L"
		if !begun {
			step, begin, begun = "M", x, true
		}
		point := step + num(x) + " " + num(height-height*v/top)
		b.WriteString(point)
		fill.WriteString(point)
	}
	end()
	return b.String(), fill.String()
}

func num(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) }

// SVG is the drawing. What a pointer shows stands in data-plot, for the script.
func (p Plot) SVG() template.HTML {
	var b strings.Builder
	b.WriteString(`<svg viewBox="0 0 ` + strconv.Itoa(width) + ` ` + strconv.Itoa(height) + `" preserveAspectRatio="none" aria-hidden="true" data-plot="`)
	b.WriteString(template.HTMLEscapeString(p.data()))
	b.WriteString(`"><path class="grid" d="M0 0.5H600M0 50H600M0 99.5H600"/>`)
	for i, l := range p.Lines {
		line, area := p.path(l)
		class := `s` + strconv.Itoa(i)
		if i == 0 {
			b.WriteString(`<path class="area ` + class + `" d="` + area + `"/>`)
		}
		b.WriteString(`<path class="line ` + class + `" d="` + line + `"/>`)
	}
	b.WriteString(`<path class="cross" d=""/></svg>`)
	return template.HTML(b.String()) //nolint:gosec // numbers, and text that is escaped above
}

// data is what the script reads: names, and values with three digits.
func (p Plot) data() string {
	type series struct {
		Name   string `json:"name"`
		Values []any  `json:"values"`
	}
	out := struct {
		Unit   Unit     `json:"unit"`
		EndMs  int64    `json:"end"`
		SpanMs int64    `json:"span"`
		Series []series `json:"series"`
	}{Unit: p.Unit, EndMs: p.End.UnixMilli(), SpanMs: p.Span.Milliseconds()}
	for _, l := range p.Lines {
		s := series{Name: l.Name, Values: make([]any, len(l.Values))}
		for i, v := range l.Values {
			if !math.IsNaN(v) {
				s.Values[i] = json.RawMessage(strconv.FormatFloat(v, 'g', 3, 64))
			}
		}
		out.Series = append(out.Series, s)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return "{}" // a number that JSON does not have: none is left
	}
	return string(text)
}
