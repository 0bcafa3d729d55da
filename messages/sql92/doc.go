// Package sql92 reads and evaluates the filter expressions by which consumers choose messages by their properties
// (spec/remoting.md §13). Pure code, standard library only.
//
//	f, err := sql92.Compile("price > 10 AND region IN ('eu', 'us')") // err is ErrExpression
//	f.Match(properties)                                              // true: the message is wanted
//
// The semantics are RocketMQ's, oddities included, so that a filter means here what it means there:
//
//	text ─ lexer, one token at a time ─ parser, one token ahead ─ nodes ─ Match ─► TRUE: wanted
//	                 │                                              │              FALSE, NULL, error: not
//	                 └ what follows a whole expression              └ property values are text; the other side's type
//	                   is not looked at                               says what they are read as
//
// A Filter never changes and is safe for concurrent use. Compile takes hostile text: its length and the nesting are limited.
// Match allocates nothing for expressions with up to 16 properties.
package sql92
