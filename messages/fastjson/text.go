package fastjson

// text reads a string with its quotes.
func (r *relaxer) text(quote byte) error {
	if quote == '\'' {
		if err := r.splice(r.pos, r.pos+1, `"`); err != nil {
			return err
		}
	}
	r.pos++
	for {
		c := r.peek()
		switch {
		case r.pos >= len(r.in):
			return r.unexpected("in string")
		case c == quote:
			return r.closeText(quote)
		case c == '\\':
			if err := r.escape(); err != nil {
				return err
			}
			continue
		case c == '"':
			if err := r.splice(r.pos, r.pos+1, `\"`); err != nil {
				return err
			}
		case c < 0x20:
			if err := r.splice(r.pos, r.pos+1, controlEscape(c)); err != nil {
				return err
			}
		}
		r.pos++
	}
}

func (r *relaxer) closeText(quote byte) error {
	r.pos++
	if quote == '\'' {
		return r.splice(r.pos-1, r.pos, `"`)
	}
	return nil
}

// escape reads one backslash sequence and replaces those that strict JSON lacks.
func (r *relaxer) escape() error {
	from := r.pos
	r.pos++
	c := r.peek()
	switch {
	case c == '"' || c == '\\' || c == '/' || c == 'b' || c == 'f' || c == 'n' || c == 'r' || c == 't':
		r.pos++
		return nil
	case c == 'u':
		_, err := r.hex(4)
		return err
	case c == 'x':
		code, err := r.hex(2)
		if err != nil {
			return err
		}
		return r.splice(from, r.pos, controlEscape(code))
	}
	short, ok := shortEscape(c)
	if !ok {
		return r.unexpected("after a backslash")
	}
	r.pos++
	return r.splice(from, r.pos, short)
}

func shortEscape(c byte) (string, bool) {
	switch {
	case c == '\'':
		return "'", true
	case c == 'v':
		return `\u000B`, true
	case c == 'F':
		return `\f`, true
	case c >= '0' && c <= '7':
		return controlEscape(c - '0'), true
	}
	return "", false
}

// hex skips the letter at the position and reads n hexadecimal digits; only two of them fit into the result.
func (r *relaxer) hex(n int) (byte, error) {
	code := 0
	for r.pos++; n > 0; n-- {
		c := r.peek()
		switch {
		case isDigit(c):
			code = code<<4 | int(c-'0')
		case c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F':
			code = code<<4 | int(c|0x20-'a'+10)
		default:
			return 0, r.unexpected("in a hexadecimal escape")
		}
		r.pos++
	}
	return byte(code), nil
}

func controlEscape(c byte) string {
	return string([]byte{'\\', 'u', '0', '0', upperHex[c>>4], upperHex[c&0xF]})
}
