package acl

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// pattern matches addresses: one set of numbers for each of the four bytes, or eight groups. No field: every address.
type pattern struct {
	fields [][]span
	v6     bool
}

// span is an inclusive range.
type span struct{ from, to uint16 }

// parsePatterns reads a list of address patterns with commas between them; blank is none (spec/remoting.md §16.3).
func parsePatterns(list string) ([]pattern, error) {
	var all []pattern
	for _, text := range splitOutside(list) {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		p, err := parsePattern(text)
		if err != nil {
			return nil, fmt.Errorf("address %q: %w", text, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// splitOutside splits at commas that are not within braces.
func splitOutside(list string) []string {
	var parts []string
	depth, start := 0, 0
	for i, c := range list {
		switch {
		case c == '{':
			depth++
		case c == '}':
			depth--
		case c == ',' && depth == 0:
			parts = append(parts, list[start:i])
			start = i + 1
		}
	}
	return append(parts, list[start:])
}

const v4Fields, v6Fields = 4, 8

func parsePattern(text string) (pattern, error) {
	if text == "*" {
		return pattern{}, nil
	}
	p := pattern{v6: strings.Contains(text, ":")}
	separator, base, most, want := ".", 10, uint64(255), v4Fields
	if p.v6 {
		separator, base, most, want = ":", 16, 0xffff, v6Fields
		text = expand(text)
	}
	words := strings.Split(text, separator)
	if len(words) != want {
		return p, fmt.Errorf("%d fields, want %d", len(words), want)
	}
	for _, word := range words {
		spans, err := parseField(word, base, most)
		if err != nil {
			return p, err
		}
		p.fields = append(p.fields, spans)
	}
	if text == "*.*.*.*" || text == "*:*:*:*:*:*:*:*" {
		return pattern{}, nil
	}
	return p, nil
}

// expand writes the groups that :: stands for.
func expand(text string) string {
	before, after, found := strings.Cut(text, "::")
	if !found {
		return text
	}
	count := func(s string) int {
		if s == "" {
			return 0
		}
		return strings.Count(s, ":") + 1
	}
	missing := v6Fields - count(before) - count(after)
	if missing < 1 {
		return text
	}
	zeros := strings.TrimSuffix(strings.Repeat("0:", missing), ":")
	return strings.Trim(before+":"+zeros+":"+after, ":")
}

// parseField reads *, a number, a range a-b, or a choice {a,b}.
func parseField(word string, base int, most uint64) ([]span, error) {
	if word == "*" {
		return []span{{0, uint16(most)}}, nil
	}
	inner, choice := strings.CutPrefix(word, "{")
	if choice {
		var closed bool
		if inner, closed = strings.CutSuffix(inner, "}"); !closed {
			return nil, fmt.Errorf("%q has no end", word)
		}
	}
	var spans []span
	for part := range strings.SplitSeq(inner, ",") {
		from, to, ranged := strings.Cut(strings.TrimSpace(part), "-")
		if !ranged {
			to = from
		}
		a, errA := strconv.ParseUint(from, base, 16)
		b, errB := strconv.ParseUint(to, base, 16)
		if errA != nil || errB != nil || a > b || b > most {
			return nil, fmt.Errorf("%q is no number or range", part)
		}
		spans = append(spans, span{uint16(a), uint16(b)})
	}
	return spans, nil
}

// matches tells whether one of the patterns is for the address.
func matches(patterns []pattern, addr netip.Addr) bool {
	addr = addr.Unmap()
	for _, p := range patterns {
		if p.fields == nil || p.v6 == addr.Is6() && p.matches(addr) {
			return true
		}
	}
	return false
}

func (p pattern) matches(addr netip.Addr) bool {
	raw := addr.AsSlice()
	for i, spans := range p.fields {
		var n uint16
		if p.v6 {
			n = uint16(raw[2*i])<<8 | uint16(raw[2*i+1])
		} else {
			n = uint16(raw[i])
		}
		in := false
		for _, s := range spans {
			in = in || s.from <= n && n <= s.to
		}
		if !in {
			return false
		}
	}
	return true
}
