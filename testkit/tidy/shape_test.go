package tidy_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// Limits of length, in lines.
const (
	maxFunction = 70
	maxFile     = 600
	maxTestFile = 1000
)

// functionLength: a function fits on a screen.
func functionLength(s *source) []string {
	var problems []string
	for _, d := range s.tree.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok {
			continue
		}
		lines := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1
		if lines > maxFunction {
			problems = append(problems, s.at(f.Pos(), "%s has %d lines, limit %d", f.Name.Name, lines, maxFunction))
		}
	}
	return problems
}

func TestFunctionLength(t *testing.T) { check(t, functionLength) }

// fileLength: a file has one subject.
func fileLength(s *source) []string {
	limit := maxFile
	if s.test() {
		limit = maxTestFile
	}
	if lines := bytes.Count(s.text, []byte("\n")); lines > limit {
		return []string{fmt.Sprintf("%s: %d lines, limit %d", s.path, lines, limit)}
	}
	return nil
}

func TestFileLength(t *testing.T) { check(t, fileLength) }

// formatted: gofmt would change nothing.
func formatted(s *source) []string {
	want, err := format.Source(s.text)
	switch {
	case err != nil:
		return []string{fmt.Sprintf("%s: %v", s.path, err)}
	case !bytes.Equal(want, s.text):
		return []string{s.path + ": run gofmt"}
	}
	return nil
}

func TestFormat(t *testing.T) { check(t, formatted) }

// packageDocs: every package says what it is, in doc.go and nowhere else.
func packageDocs(all []*source) []string {
	var problems []string
	said := map[string]bool{}
	for _, s := range all {
		if s.test() {
			continue
		}
		said[s.dir()] = said[s.dir()] || false
		if s.tree.Doc == nil {
			continue
		}
		if !strings.HasSuffix(s.path, "/doc.go") {
			problems = append(problems, s.at(s.tree.Doc.Pos(), "the package comment belongs in doc.go"))
			continue
		}
		start := "Package " + s.tree.Name.Name + " "
		if s.tree.Name.Name == "main" {
			start = "Command "
		}
		if !strings.HasPrefix(s.tree.Doc.Text(), start) {
			problems = append(problems, s.at(s.tree.Doc.Pos(), "the package comment does not begin with %q", start))
		}
		said[s.dir()] = true
	}
	for dir, ok := range said {
		if !ok {
			problems = append(problems, dir+": no package comment in a doc.go")
		}
	}
	slices.Sort(problems)
	return problems
}

func TestPackageComments(t *testing.T) { none(t, packageDocs(sources(t))) }

// told are methods whose name says all there is to say.
var told = []string{"Error", "String", "Unwrap", "Len", "Less", "Swap"}

// documented: every exported name of the layers that others use has a comment.
func documented(s *source) []string {
	if s.test() || !slices.ContainsFunc([]string{"messages", "segments", "actors", "system"}, func(tree string) bool {
		return within(s.dir(), tree)
	}) {
		return nil
	}
	var problems []string
	for _, d := range s.tree.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if needsComment(d) && d.Doc == nil {
				problems = append(problems, s.at(d.Pos(), "%s has no comment", d.Name.Name))
			}
		case *ast.GenDecl:
			problems = append(problems, s.undocumented(d)...)
		}
	}
	return problems
}

// needsComment tells whether a function, or a method, is one that others see and that does not say all by its name.
func needsComment(f *ast.FuncDecl) bool {
	if !f.Name.IsExported() || !exportedReceiver(f) {
		return false
	}
	return f.Recv == nil || !slices.Contains(told, f.Name.Name)
}

// exportedReceiver tells whether a function is a method of an exported type, or no method.
func exportedReceiver(f *ast.FuncDecl) bool {
	if f.Recv == nil {
		return true
	}
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.IsExported()
		default:
			return true
		}
	}
}

// undocumented looks at types, constants and variables. A comment on a group of constants or variables counts for all of
// it; of types each one has its own.
func (s *source) undocumented(d *ast.GenDecl) []string {
	var problems []string
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && spec.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
				problems = append(problems, s.at(spec.Pos(), "%s has no comment", spec.Name.Name))
			}
		case *ast.ValueSpec:
			if d.Tok == token.IMPORT || spec.Doc != nil || spec.Comment != nil || d.Doc != nil {
				continue
			}
			for _, name := range spec.Names {
				if name.IsExported() {
					problems = append(problems, s.at(name.Pos(), "%s has no comment", name.Name))
				}
			}
		}
	}
	return problems
}

func TestExportedNamesAreDocumented(t *testing.T) { check(t, documented) }
