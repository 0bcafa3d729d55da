package sql92

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

type tokenKind uint8

const (
	tokenEnd    tokenKind = iota
	tokenName             // an identifier
	tokenWord             // a keyword, in capitals
	tokenSign             // an operator, a parenthesis or a comma
	tokenWhole            // an integer
	tokenFloat            // a number with a point or an exponent
	tokenString           // text in quotes
)

type token struct {
	kind tokenKind
	text string // a name, word or sign; a string without its quotes
	lit  value  // of numbers and strings
	at   int    // byte offset
	bad  error  // why a number can't be used; where it is not, that does not matter
}

// keywords are recognised in any case.
var keywords = []string{"NOT", "AND", "OR", "BETWEEN", "IN", "TRUE", "FALSE", "NULL", "IS"}

// lexer cuts the text into tokens, on demand: what is never asked for may be anything.
type lexer struct {
	text string
	at   int
}

func (l *lexer) next() (token, error) {
	if err := l.skip(); err != nil {
		return token{}, err
	}
	t := token{at: l.at}
	if l.at == len(l.text) {
		return t, nil
	}
	rest := l.text[l.at:]
	switch c := rest[0]; {
	case isNameByte(c) && !isDigit(c):
		n, _ := span(rest, isNameByte)
		return l.name(t, rest[:n]), nil
	case isDigit(c), c == '.' && len(rest) > 1 && isDigit(rest[1]):
		return l.number(t, rest), nil
	case c == '\'':
		return l.quoted(t, rest)
	}
	for _, sign := range []string{"<=", ">=", "<>", "=", "<", ">", "+", "-", "(", ")", ","} {
		if strings.HasPrefix(rest, sign) {
			t.kind, t.text = tokenSign, sign
			l.at += len(sign)
			return t, nil
		}
	}
	return t, fmt.Errorf("unexpected %.10q at byte %d", rest, l.at)
}

func isNameByte(c byte) bool {
	return c == '_' || c == '$' || isDigit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func (l *lexer) name(t token, text string) token {
	l.at += len(text)
	t.kind, t.text = tokenName, text
	for _, word := range keywords {
		if strings.EqualFold(word, text) {
			t.kind, t.text = tokenWord, word
		}
	}
	return t
}

// skip passes over white space and comments.
func (l *lexer) skip() error {
	for l.at < len(l.text) {
		rest := l.text[l.at:]
		switch {
		case strings.IndexByte(" \t\n\r\f", rest[0]) >= 0:
			l.at++
		case strings.HasPrefix(rest, "--"):
			end := strings.IndexAny(rest, "\r\n")
			if end < 0 {
				return nil // without an end of line it is no comment but two signs
			}
			l.at += end
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				return fmt.Errorf("the comment at byte %d has no end", l.at)
			}
			l.at += end + len("/**/")
		default:
			return nil
		}
	}
	return nil
}

// number takes the longest number: "0", "17", "17L", "1.", ".5", "1e3".
func (l *lexer) number(t token, rest string) token {
	whole, after := span(rest, isDigit)
	n := whole
	if strings.HasPrefix(after, ".") {
		more, _ := span(after[1:], isDigit)
		n += 1 + more
	}
	n += exponent(rest[n:])
	if n == whole {
		return l.whole(t, rest, whole)
	}
	t.kind = tokenFloat
	f, err := strconv.ParseFloat(rest[:n], 64)
	switch {
	case err != nil:
		t.bad = fmt.Errorf("the number at byte %d: %w", l.at, err)
	case f == 0: // RocketMQ takes it for one that is too small
		t.bad = fmt.Errorf("the number at byte %d is 0: write it without a point", l.at)
	}
	t.lit = value{kind: kindFloat, float: f}
	l.at += n
	return t
}

// whole takes an integer of so many digits; one that begins with 0 ends there, and what follows is another one.
func (l *lexer) whole(t token, rest string, digits int) token {
	t.kind = tokenWhole
	if rest[0] == '0' {
		digits = 1
	}
	var ok bool
	if t.lit, ok = readWhole(rest[:digits], kindInt, math.MinInt32, math.MaxInt32); !ok {
		t.lit, ok = readWhole(rest[:digits], kindLong, math.MinInt64, math.MaxInt64)
	}
	if !ok {
		t.bad = fmt.Errorf("the number at byte %d does not fit into 64 bits", l.at)
	}
	if l.at += digits; rest[0] != '0' && digits < len(rest) && (rest[digits] == 'l' || rest[digits] == 'L') {
		l.at++
	}
	return t
}

// exponent is the length of an exponent at the beginning of text, 0 without one.
func exponent(text string) int {
	if text == "" || text[0] != 'e' && text[0] != 'E' {
		return 0
	}
	sign := 0
	if len(text) > 1 && (text[1] == '+' || text[1] == '-') {
		sign = 1
	}
	digits, _ := span(text[1+sign:], isDigit)
	if digits == 0 {
		return 0
	}
	return 1 + sign + digits
}

// quoted takes text in quotes; a doubled quote stands for one.
func (l *lexer) quoted(t token, rest string) (token, error) {
	for i := 1; i < len(rest); i++ {
		if rest[i] != '\'' {
			continue
		}
		if i+1 < len(rest) && rest[i+1] == '\'' {
			i++
			continue
		}
		t.kind, t.text = tokenString, strings.ReplaceAll(rest[1:i], "''", "'")
		t.lit = value{kind: kindString, text: t.text}
		l.at += i + 1
		return t, nil
	}
	return t, fmt.Errorf("the text at byte %d has no closing quote", l.at)
}
