package sql92

import "slices"

// node is a part of an expression. It never changes.
type node interface {
	// eval is the node's value at a message; values are the message's properties in the order of Filter.names.
	eval(values []value) value
}

// logical marks the nodes that are boolean or null whatever the message.
type logical interface {
	node
	logical()
}

type (
	constant struct{ is value }
	property struct{ at int }

	// cast is a property where a condition is expected: false whatever its text, null when it is missing.
	cast struct{ of node }
	not  struct{ of node }
	// minus is a sign; of what is no number it is null.
	minus struct{ of node }

	// all and some are AND and OR of their parts, looked at from the left up to where the result is certain.
	all  struct{ of []node }
	some struct{ of []node }

	equal struct{ left, right node }
	order struct {
		sign        string
		left, right node
	}
	isNull struct{ of node }
	// in is IN of a property.
	in struct {
		of   property
		list []string
	}
)

func (cast) logical()   {}
func (not) logical()    {}
func (all) logical()    {}
func (some) logical()   {}
func (equal) logical()  {}
func (order) logical()  {}
func (isNull) logical() {}
func (in) logical()     {}

// isLogical tells whether a node can stand where a condition is expected.
func isLogical(n node) bool {
	if c, ok := n.(constant); ok {
		return c.is.kind == kindBool || c.is.kind == kindNull
	}
	_, ok := n.(logical)
	return ok
}

func (n constant) eval([]value) value        { return n.is }
func (n property) eval(values []value) value { return values[n.at] }

func (n cast) eval(values []value) value {
	switch v := n.of.eval(values); v.kind {
	case kindNull, kindError, kindBool:
		return v
	}
	return truth(false)
}

func (n not) eval(values []value) value { return n.of.eval(values).not() }

func (n minus) eval(values []value) value {
	v := n.of.eval(values)
	switch v.kind {
	case kindInt, kindLong:
		v.whole = -v.whole
	case kindFloat:
		v.float = -v.float
	case kindError:
	default:
		return null
	}
	return v
}

func (n all) eval(values []value) value  { return fold(n.of, values, false) }
func (n some) eval(values []value) value { return fold(n.of, values, true) }

// fold looks for a part that decides: a false one in AND, a true one in OR.
func fold(parts []node, values []value, decisive bool) value {
	result := truth(!decisive)
	for _, part := range parts {
		v := part.eval(values)
		switch {
		case v.kind == kindError, v.kind == kindBool && v.is == decisive:
			return v
		case v.kind != kindBool:
			result = null
		}
	}
	return result
}

// eval: null on the left makes it null, null only on the right false.
func (n equal) eval(values []value) value {
	a := n.left.eval(values)
	if a.kind == kindError {
		return a
	}
	b := n.right.eval(values)
	switch {
	case b.kind == kindError:
		return b
	case a.kind == kindNull && b.kind == kindNull:
		return truth(true)
	case a.kind == kindNull:
		return null
	case b.kind == kindNull:
		return truth(false)
	}
	order, comparable, fails := compare(a, b)
	if fails {
		return failed
	}
	return truth(comparable && order == 0)
}

func (n order) eval(values []value) value {
	a := n.left.eval(values)
	if a.kind == kindNull || a.kind == kindError {
		return a
	}
	b := n.right.eval(values)
	if b.kind == kindNull || b.kind == kindError {
		return b
	}
	if isText(a, b) { // two properties: as numbers
		var okA, okB bool
		a, okA = a.read(kindFloat)
		b, okB = b.read(kindFloat)
		if !okA || !okB {
			return failed
		}
	}
	order, comparable, fails := compare(a, b)
	if fails {
		return failed
	}
	switch n.sign {
	case "<":
		return truth(comparable && order < 0)
	case "<=":
		return truth(comparable && order <= 0)
	case ">":
		return truth(comparable && order > 0)
	}
	return truth(comparable && order >= 0)
}

func (n isNull) eval(values []value) value {
	v := n.of.eval(values)
	if v.kind == kindError {
		return v
	}
	return truth(v.kind == kindNull)
}

func (n in) eval(values []value) value {
	v := n.of.eval(values)
	if v.kind != kindString {
		return null
	}
	return truth(slices.Contains(n.list, v.text))
}
