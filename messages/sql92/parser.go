package sql92

import (
	"errors"
	"fmt"
	"slices"
)

// parser reads the grammar of spec/remoting.md §13.1 by recursive descent.
type parser struct {
	lexer lexer
	ahead token // read and not yet taken, when some is true
	some  bool
	depth int
	names []string
}

var errDepth = fmt.Errorf("nested deeper than %d", maxDepth)

// peek looks at the next token.
func (p *parser) peek() (token, error) {
	if !p.some {
		var err error
		if p.ahead, err = p.lexer.next(); err != nil {
			return token{}, err
		}
		p.some = true
	}
	return p.ahead, nil
}

func (p *parser) take() { p.some = false }

// accept takes the next token if it is one of these words or signs.
func (p *parser) accept(texts ...string) (string, error) {
	t, err := p.peek()
	if err != nil || t.kind != tokenWord && t.kind != tokenSign || !slices.Contains(texts, t.text) {
		return "", err
	}
	p.take()
	return t.text, nil
}

// expect takes a word or sign that must be there.
func (p *parser) expect(text string) error {
	got, err := p.accept(text)
	if err == nil && got == "" {
		err = p.unexpected("want " + text)
	}
	return err
}

func (p *parser) unexpected(want string) error {
	t, err := p.peek()
	switch {
	case err != nil:
		return err
	case t.kind == tokenEnd:
		return fmt.Errorf("the text ends at byte %d, %s", t.at, want)
	}
	return fmt.Errorf("unexpected %.20q at byte %d, %s", p.lexer.text[t.at:], t.at, want)
}

// selector is a whole expression. What follows it is not looked at, beyond the next token.
func (p *parser) selector() (node, error) {
	n, err := p.or()
	if err == nil {
		if _, err = p.peek(); err == nil {
			n, err = condition(n)
		}
	}
	return n, err
}

// condition makes of a node one that can stand where a condition is expected.
func condition(n node) (node, error) {
	switch {
	case isLogical(n):
		return n, nil
	default:
		if p, ok := n.(property); ok {
			return cast{of: p}, nil
		}
	}
	return nil, errors.New("it is no condition")
}

func (p *parser) or() (node, error) {
	return p.series("OR", p.and, func(of []node) node { return some{of: of} })
}

func (p *parser) and() (node, error) {
	return p.series("AND", p.equality, func(of []node) node { return all{of: of} })
}

// series reads parts with a word between them.
func (p *parser) series(word string, part func() (node, error), join func([]node) node) (node, error) {
	var parts []node
	for {
		n, err := part()
		if err != nil {
			return nil, err
		}
		got, err := p.accept(word)
		if err != nil {
			return nil, err
		}
		if got == "" && parts == nil {
			return n, nil
		}
		if n, err = condition(n); err != nil {
			return nil, err
		}
		if parts = append(parts, n); got == "" {
			return join(parts), nil
		}
	}
}

func (p *parser) equality() (node, error) {
	left, err := p.comparison()
	for err == nil {
		var got string
		if got, err = p.accept("=", "<>", "IS"); err != nil || got == "" {
			return left, err
		}
		if got == "IS" {
			left, err = p.is(left)
			continue
		}
		var right node
		if right, err = p.comparison(); err == nil {
			left, err = equality(left, right, got)
		}
	}
	return nil, err
}

func (p *parser) is(left node) (node, error) {
	negated, err := p.accept("NOT")
	if err == nil {
		err = p.expect("NULL")
	}
	if negated != "" {
		return not{of: isNull{of: left}}, err
	}
	return isNull{of: left}, err
}

func equality(left, right node, sign string) (node, error) {
	l, leftIs := left.(constant)
	r, rightIs := right.(constant)
	switch {
	case leftIs && l.is.kind == kindNull, rightIs && r.is.kind == kindNull:
		return nil, fmt.Errorf("NULL beside %s: IS NULL asks for it", sign)
	case leftIs && rightIs && l.is.kind == kindBool && r.is.kind != kindBool:
		return nil, errors.New("a boolean is compared with what is none")
	}
	if sign == "<>" {
		return not{of: equal{left: left, right: right}}, nil
	}
	return equal{left: left, right: right}, nil
}

func (p *parser) comparison() (node, error) {
	left, err := p.unary()
	for err == nil {
		var got string
		if got, err = p.accept(">", ">=", "<", "<=", "BETWEEN", "IN", "NOT"); err != nil {
			break
		}
		negated := got == "NOT"
		if negated {
			if got, err = p.accept("BETWEEN", "IN"); err == nil && got == "" {
				err = p.unexpected("want BETWEEN or IN")
			}
			if err != nil {
				break
			}
		}
		switch got {
		case "":
			return left, nil
		case "BETWEEN":
			left, err = p.between(left, negated)
		case "IN":
			left, err = p.in(left, negated)
		default:
			var right node
			if right, err = p.unary(); err == nil {
				left, err = comparison(left, right, got)
			}
		}
	}
	return nil, err
}

func comparison(left, right node, sign string) (node, error) {
	for _, side := range []node{left, right} {
		if c, ok := side.(constant); ok && !c.is.isNumber() || !ok && isLogical(side) {
			return nil, fmt.Errorf("only numbers and properties stand beside %s", sign)
		}
	}
	return order{sign: sign, left: left, right: right}, nil
}

func (p *parser) between(what node, negated bool) (node, error) {
	low, err := p.unary()
	if err == nil {
		err = p.expect("AND")
	}
	if err != nil {
		return nil, err
	}
	high, err := p.unary()
	if err != nil {
		return nil, err
	}
	l, lowIs := low.(constant)
	h, highIs := high.(constant)
	if !negated && lowIs && highIs && l.is.isNumber() && h.is.isNumber() {
		if order, _, _ := compare(l.is, h.is); order > 0 {
			return nil, errors.New("the limits of BETWEEN are the wrong way round")
		}
	}
	first, second := ">=", "<="
	if negated {
		first, second = "<", ">"
	}
	a, err := comparison(what, low, first)
	if err != nil {
		return nil, err
	}
	b, err := comparison(what, high, second)
	if negated {
		return some{of: []node{a, b}}, err
	}
	return all{of: []node{a, b}}, err
}

func (p *parser) in(what node, negated bool) (node, error) {
	of, ok := what.(property)
	if !ok {
		return nil, errors.New("only a property stands before IN")
	}
	if err := p.expect("("); err != nil {
		return nil, err
	}
	var list []string
	for {
		t, err := p.peek()
		if err == nil && t.kind != tokenString {
			err = p.unexpected("want text in quotes")
		}
		if err != nil {
			return nil, err
		}
		p.take()
		list = append(list, t.text)
		got, err := p.accept(",", ")")
		switch {
		case err != nil:
			return nil, err
		case got == "":
			return nil, p.unexpected("want , or )")
		case got == ",":
			continue
		case negated:
			return not{of: in{of: of, list: list}}, nil
		}
		return in{of: of, list: list}, nil
	}
}

func (p *parser) unary() (node, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, errDepth
	}
	defer func() { p.depth-- }()
	got, err := p.accept("+", "-", "NOT")
	if err != nil {
		return nil, err
	}
	if got == "" {
		return p.primary()
	}
	n, err := p.unary()
	switch {
	case err != nil:
		return nil, err
	case got == "-":
		return minus{of: n}, nil
	case got == "NOT":
		n, err = condition(n)
		return not{of: n}, err
	}
	return n, nil
}

func (p *parser) primary() (node, error) {
	t, err := p.peek()
	if err != nil {
		return nil, err
	}
	switch {
	case t.kind == tokenWhole, t.kind == tokenFloat, t.kind == tokenString:
		p.take()
		return constant{is: t.lit}, t.bad
	case t.kind == tokenName:
		p.take()
		return p.property(t.text), nil
	}
	got, err := p.accept("TRUE", "FALSE", "NULL", "(")
	switch {
	case err != nil:
		return nil, err
	case got == "":
		return nil, p.unexpected("want a value")
	case got == "NULL":
		return constant{is: null}, nil
	case got != "(":
		return constant{is: truth(got == "TRUE")}, nil
	}
	n, err := p.or()
	if err == nil {
		err = p.expect(")")
	}
	return n, err
}

// property is a node for a name, which has its place in names.
func (p *parser) property(name string) node {
	at := slices.Index(p.names, name)
	if at < 0 {
		at = len(p.names)
		p.names = append(p.names, name)
	}
	return property{at: at}
}
