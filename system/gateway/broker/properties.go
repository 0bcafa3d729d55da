package broker

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// ErrProperties: a text is no Java properties text.
var ErrProperties = errors.New("bad properties text")

// maxOptions bounds the lines of one text.
const maxOptions = 1024

// PropertiesText writes options as "name=value" lines, sorted; the way in which brokers and name servers show their
// configuration (spec/remoting.md §17.6).
func PropertiesText(options map[string]string) []byte {
	b := strings.Builder{}
	for _, name := range slices.Sorted(maps.Keys(options)) {
		b.WriteString(name + "=" + options[name] + "\n")
	}
	return []byte(b.String())
}

// ParseProperties reads the body of a configuration update: Java properties text as tools write it, "name=value" lines with
// comments and backslash escapes; no continued lines.
func ParseProperties(body []byte) (map[string]string, error) {
	options := map[string]string{}
	for line := range strings.Lines(string(body)) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		name, value, err := splitProperty(line)
		if err != nil {
			return nil, err
		}
		if options[name] = value; len(options) > maxOptions {
			return nil, fmt.Errorf("%w: more than %d options", ErrProperties, maxOptions)
		}
	}
	return options, nil
}

// splitProperty takes a line apart at the first '=' or ':' that is not escaped.
func splitProperty(line string) (name, value string, err error) {
	at := 0
	for at < len(line) && line[at] != '=' && line[at] != ':' {
		if line[at] == '\\' {
			at++
		}
		at++
	}
	if at >= len(line) {
		return "", "", fmt.Errorf("%w: line %.80q has no value", ErrProperties, line)
	}
	if name, err = unescape(strings.TrimSpace(line[:at])); err == nil {
		value, err = unescape(strings.TrimSpace(line[at+1:]))
	}
	if err == nil && name == "" {
		err = fmt.Errorf("%w: line %.80q has no name", ErrProperties, line)
	}
	return name, value, err
}

func unescape(text string) (string, error) {
	if !strings.Contains(text, `\`) {
		return text, nil
	}
	b := strings.Builder{}
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' {
			b.WriteByte(text[i])
			continue
		}
		if i++; i == len(text) {
			return "", fmt.Errorf("%w: %.80q ends in a backslash", ErrProperties, text)
		}
		const unicodeDigits = 4
		switch c := text[i]; c {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			digits := text[i+1:]
			code, err := strconv.ParseUint(digits[:min(len(digits), unicodeDigits)], 16, 16)
			if err != nil || len(digits) < unicodeDigits {
				return "", fmt.Errorf("%w: bad escape in %.80q", ErrProperties, text)
			}
			b.WriteRune(rune(code))
			i += unicodeDigits
		default:
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
