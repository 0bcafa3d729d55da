package sql92

import (
	"errors"
	"fmt"
	"sync"

	"github.com/actormq/actormq/messages"
)

// ErrExpression: the text is no filter expression; the message says where and why.
var ErrExpression = errors.New("bad filter expression")

const (
	// MaxBytes bounds the text of an expression. RocketMQ has no limit; what people write is far shorter.
	MaxBytes = 32 << 10
	// maxDepth bounds the nesting of parentheses, NOT and signs.
	maxDepth = 200
	// fewProperties is up to how many properties an expression's values fit into recycled memory.
	fewProperties = 16
)

// scratch recycles the values of a match.
var scratch = sync.Pool{New: func() any { return new([fewProperties]value) }}

// Filter is a compiled expression.
type Filter struct {
	text  string
	root  node
	names []string // of the properties, each once; nodes name them by their place here
}

// Result is what an expression is for a message.
type Result int8

// Results. Only True selects a message.
const (
	False Result = iota
	True
	Null
	Failed // a value could not be read as what it is compared with
)

// Compile reads an expression. The error is ErrExpression.
func Compile(text string) (*Filter, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("%w: %d bytes, limit %d", ErrExpression, len(text), MaxBytes)
	}
	p := parser{lexer: lexer{text: text}}
	root, err := p.selector()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrExpression, err)
	}
	return &Filter{text: text, root: root, names: p.names}, nil
}

// String returns the text that was compiled.
func (f *Filter) String() string { return f.text }

// Match tells whether a message with these properties is wanted.
func (f *Filter) Match(p messages.Properties) bool {
	few := scratch.Get().(*[fewProperties]value)
	values := few[:]
	if len(f.names) > len(few) {
		values = make([]value, len(f.names))
	}
	for name, text := range p.All() {
		for i := range f.names {
			if f.names[i] == name {
				values[i] = value{kind: kindString, text: text}
			}
		}
	}
	result := resultOf(f.root.eval(values))
	clear(values) // they lie in the message
	scratch.Put(few)
	return result == True
}

// Evaluate returns what the expression is for properties that lookup finds.
func (f *Filter) Evaluate(lookup func(name string) (value string, found bool)) Result {
	values := make([]value, len(f.names))
	for i, name := range f.names {
		if text, found := lookup(name); found {
			values[i] = value{kind: kindString, text: text}
		}
	}
	return resultOf(f.root.eval(values))
}

func resultOf(v value) Result {
	switch {
	case v.kind == kindError:
		return Failed
	case v.kind != kindBool:
		return Null
	case v.is:
		return True
	}
	return False
}
