package fastjson

import (
	"errors"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

const upperHex = "0123456789ABCDEF"

// AppendString writes s as a JSON string with its quotes, escaped as the original does: short forms for \b \t \n \f \r,
// \u00XX for other control characters, nothing else but quote and backslash. Bytes that are not UTF-8 become U+FFFD.
// It allocates only to grow dst.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	from := 0
	for i := unplain(s, 0); i < len(s); i = unplain(s, i) {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r != utf8.RuneError || size != 1 {
				i += size
				continue
			}
		}
		dst = appendEscape(append(dst, s[from:i]...), c)
		i++
		from = i
	}
	return append(append(dst, s[from:]...), '"')
}

// plain are the bytes that stand for themselves in a string.
var plain = func() (is [256]bool) {
	for c := ' '; c < utf8.RuneSelf; c++ {
		is[c] = c != '"' && c != '\\'
	}
	return is
}()

func appendEscape(dst []byte, c byte) []byte {
	switch {
	case c >= utf8.RuneSelf:
		return append(dst, "\uFFFD"...)
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case c == '\b':
		return append(dst, `\b`...)
	case c == '\t':
		return append(dst, `\t`...)
	case c == '\n':
		return append(dst, `\n`...)
	case c == '\f':
		return append(dst, `\f`...)
	case c == '\r':
		return append(dst, `\r`...)
	}
	return append(dst, '\\', 'u', '0', '0', upperHex[c>>4], upperHex[c&0xF])
}

var errEscape = errors.New("bad escape sequence")

// Unquote resolves the escapes of a JSON string given without its quotes, those of the dialect included. Lone
// surrogates and bytes that are not UTF-8 become U+FFFD. Text without escapes is returned as it is, without a copy.
func Unquote(content string) (string, error) {
	if strings.IndexByte(content, '\\') < 0 {
		return strings.ToValidUTF8(content, "\uFFFD"), nil
	}
	text, err := AppendUnquoted(make([]byte, 0, len(content)), content)
	if err != nil {
		return "", err
	}
	return strings.ToValidUTF8(string(text), "\uFFFD"), nil
}

// AppendUnquoted appends what [Unquote] returns for text that is UTF-8 already: other bytes stay as they are. It appends at
// most len(content) bytes.
func AppendUnquoted(dst []byte, content string) ([]byte, error) {
	for i := 0; i < len(content); {
		from := i
		for i = Special(content, i); i < len(content) && content[i] == '"'; {
			i = Special(content, i+1)
		}
		if dst = append(dst, content[from:i]...); i == len(content) {
			break
		}
		if c, ok := escapedASCII(content[i:]); ok {
			dst = append(dst, c)
			i += len(`\u0000`)
			continue
		}
		r, size, err := unescape(content[i:])
		if err != nil {
			return dst, err
		}
		dst = utf8.AppendRune(dst, r)
		i += size
	}
	return dst, nil
}

// escapedASCII decodes the sequence that s begins with if it is one of four digits for a byte of ASCII: the separators of properties are.
func escapedASCII(s string) (byte, bool) {
	if len(s) < len(`\u0000`) || s[1] != 'u' || s[2] != '0' || s[3] != '0' || s[4]-'0' > 7 {
		return 0, false
	}
	low, ok := hexDigit(s[5])
	return (s[4]-'0')<<4 | byte(low), ok
}

// unescape decodes the sequence that s begins with.
func unescape(s string) (r rune, size int, err error) {
	if len(s) < 2 {
		return 0, 0, errEscape
	}
	switch c := s[1]; {
	case c == '"' || c == '\\' || c == '/' || c == '\'':
		return rune(c), 2, nil
	case c == 'u':
		return unescapeUnicode(s)
	case c == 'x':
		r, err = hexRune(s, 2, 2)
		return r, 4, err
	case c >= '0' && c <= '7':
		return rune(c - '0'), 2, nil
	}
	if i := strings.IndexByte("bfFnrtv", s[1]); i >= 0 {
		return rune("\b\f\f\n\r\t\v"[i]), 2, nil
	}
	return 0, 0, errEscape
}

func unescapeUnicode(s string) (r rune, size int, err error) {
	r, err = hexRune(s, 2, 4)
	if err != nil || !utf16.IsSurrogate(r) {
		return r, 6, err
	}
	if len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
		low, err := hexRune(s, 8, 4)
		if pair := utf16.DecodeRune(r, low); err == nil && pair != utf8.RuneError {
			return pair, 12, nil
		}
	}
	return utf8.RuneError, 6, nil
}

func hexRune(s string, from, n int) (rune, error) {
	if len(s) < from+n {
		return 0, errEscape
	}
	code := rune(0)
	for _, c := range []byte(s[from : from+n]) {
		digit, ok := hexDigit(c)
		if !ok {
			return 0, errEscape
		}
		code = code<<4 | digit
	}
	return code, nil
}

func hexDigit(c byte) (rune, bool) {
	switch {
	case c >= '0' && c <= '9':
		return rune(c - '0'), true
	case c >= 'a' && c <= 'f':
		return rune(c-'a') + 10, true
	case c >= 'A' && c <= 'F':
		return rune(c-'A') + 10, true
	}
	return 0, false
}
