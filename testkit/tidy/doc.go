// Package tidy holds the house rules as tests: which package may import which, how long a function and a file may be, what
// must be documented, and what must not stand in any file. It has no code of its own; `go test ./testkit/tidy` runs it.
//
// Each rule is a function from a source to a list of problems, each with file and line. rules_test.go shows that every
// rule finds what it is for. A rule is never weakened to let a change in: the change is made to fit, or the rule is changed
// with its reason in docs/adr.
//
//	layers_test.go     messages ← segments ← actors ← system ← cmd; testkit may use all, only tests use it
//	shape_test.go      lengths, formatting, doc.go, comments on exported names
//	calls_test.go      no sleeping, no printing, nothing but messages between the writer and the world
//	words_test.go      words that no file has; links and names of tests in the documents
//	messages_test.go   docs/MESSAGES.md has every message
//	errors_test.go     docs/ERRORS.md has every error
//
// Folders with a go.mod of their own (clients of other projects) and folders named testdata are not looked at, except for
// words.
package tidy
