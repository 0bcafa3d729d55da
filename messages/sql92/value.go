package sql92

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

type kind uint8

const (
	kindNull kind = iota
	kindError
	kindBool
	kindInt  // 32 bits
	kindLong // 64 bits
	kindFloat
	kindString
)

// value is what an expression is at a message. The zero value is null.
type value struct {
	kind  kind
	is    bool
	whole int64
	float float64
	text  string
}

var (
	null   = value{kind: kindNull}
	failed = value{kind: kindError}
)

func truth(b bool) value { return value{kind: kindBool, is: b} }

func (v value) isNumber() bool { return v.kind >= kindInt && v.kind <= kindFloat }

// not is NOT of a boolean or null.
func (v value) not() value {
	if v.kind == kindBool {
		v.is = !v.is
	}
	return v
}

// isText tells whether both are text.
func isText(a, b value) bool { return a.kind == kindString && b.kind == kindString }

// compare orders two values that are not null, after one that is text has been read as the other one's type. Without an order
// between the types, comparable is false; fails is true when the text is none of that type. RocketMQ can't read text on the
// right of a boolean.
func compare(a, b value) (order int, comparable, fails bool) {
	ok := true
	switch {
	case a.kind == b.kind:
	case a.kind == kindString:
		a, ok = a.read(b.kind)
	case b.kind == kindString && a.kind == kindBool:
		ok = false
	case b.kind == kindString:
		b, ok = b.read(a.kind)
	case !a.isNumber() || !b.isNumber():
		return 0, false, false
	}
	if !ok {
		return 0, false, true
	}
	switch {
	case a.kind == kindString:
		return strings.Compare(a.text, b.text), true, false
	case a.kind == kindBool:
		return cmp.Compare(number(a.is), number(b.is)), true, false
	case a.kind == kindFloat || b.kind == kindFloat:
		return compareFloats(a.asFloat(), b.asFloat()), true, false
	}
	return cmp.Compare(a.whole, b.whole), true, false
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

func (v value) asFloat() float64 {
	if v.kind == kindFloat {
		return v.float
	}
	return float64(v.whole)
}

// compareFloats orders as Java does: −0.0 before 0.0, and NaN, which equals itself, behind everything.
func compareFloats(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	case math.IsNaN(a) || math.IsNaN(b):
		return number(math.IsNaN(a)) - number(math.IsNaN(b))
	}
	return number(math.Signbit(b)) - number(math.Signbit(a))
}

// read is text as a value of another kind; false when it is none. Every text is a boolean.
func (v value) read(as kind) (value, bool) {
	switch as {
	case kindBool:
		return truth(strings.EqualFold(v.text, "true")), true
	case kindInt:
		return readWhole(v.text, as, math.MinInt32, math.MaxInt32)
	case kindLong:
		return readWhole(v.text, as, math.MinInt64, math.MaxInt64)
	}
	return readFloat(v.text)
}

// readWhole reads a decimal number without allocating, whatever the text: strconv allocates its errors.
func readWhole(text string, as kind, least, most int64) (value, bool) {
	digits, negative := text, false
	if digits != "" && (digits[0] == '-' || digits[0] == '+') {
		digits, negative = digits[1:], digits[0] == '-'
	}
	if digits == "" {
		return null, false
	}
	n := int64(0) // below zero: there is one more number there
	for i := range len(digits) {
		d := int64(digits[i]) - '0'
		if d < 0 || d > 9 || n < (math.MinInt64+d)/10 {
			return null, false
		}
		n = n*10 - d
	}
	if !negative {
		if n == math.MinInt64 {
			return null, false
		}
		n = -n
	}
	return value{kind: as, whole: n}, n >= least && n <= most
}

// readFloat reads what Java's Double.valueOf reads.
func readFloat(text string) (value, bool) {
	text = strings.TrimFunc(text, func(r rune) bool { return r <= ' ' })
	unsigned := strings.TrimLeft(text, "+-")
	if len(text)-len(unsigned) > 1 || unsigned == "" {
		return null, false
	}
	hex := len(unsigned) > 1 && (unsigned[1] == 'x' || unsigned[1] == 'X')
	switch {
	case unsigned == "NaN" || unsigned == "Infinity":
	case hex && !isHexFloat(unsigned), !hex && !isFloat(unsigned):
		return null, false
	default:
		text = strings.TrimRight(text, "fFdD")
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(f, 0) { // beyond the range it is infinite, which is right
		return null, false
	}
	return value{kind: kindFloat, float: f}, true
}

// isFloat tells whether text is digits with a point somewhere, an exponent, and one of f, F, d, D, in part.
func isFloat(text string) bool {
	digits, rest := span(text, isDigit)
	if strings.HasPrefix(rest, ".") {
		var more int
		more, rest = span(rest[1:], isDigit)
		digits += more
	}
	return digits > 0 && isExponent(rest, "eE", false)
}

// isHexFloat is the same for 0x…p…, where the exponent is required.
func isHexFloat(text string) bool {
	digits, rest := span(text[2:], isHexDigit)
	if strings.HasPrefix(rest, ".") {
		var more int
		more, rest = span(rest[1:], isHexDigit)
		digits += more
	}
	return text[0] == '0' && digits > 0 && isExponent(rest, "pP", true)
}

func isExponent(text, letters string, required bool) bool {
	if text != "" && strings.IndexByte(letters, text[0]) >= 0 {
		text = text[1:]
		if text != "" && (text[0] == '+' || text[0] == '-') {
			text = text[1:]
		}
		var digits int
		if digits, text = span(text, isDigit); digits == 0 {
			return false
		}
	} else if required {
		return false
	}
	return text == "" || len(text) == 1 && strings.IndexByte("fFdD", text[0]) >= 0
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHexDigit(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// span counts the leading bytes of a kind.
func span(text string, of func(byte) bool) (n int, rest string) {
	for n < len(text) && of(text[n]) {
		n++
	}
	return n, text[n:]
}
