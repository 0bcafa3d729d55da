package tidy_test

import (
	"go/ast"
	"go/token"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// sentinel is the name of an error that a caller can test for.
var sentinel = regexp.MustCompile(`^Err[A-Z0-9]`)

// failures returns what callers can test errors for, by folder and name ("segments/vfs.ErrLocked"): the exported sentinels, and
// the exported types that are errors.
func failures(all []*source) map[string]string {
	found := map[string]string{}
	for _, s := range all {
		if s.test() || within(s.dir(), "testkit") {
			continue
		}
		for _, d := range s.tree.Decls {
			switch d := d.(type) {
			case *ast.GenDecl:
				for _, name := range valueNames(d) {
					if sentinel.MatchString(name.Name) {
						found[s.dir()+"."+name.Name] = s.at(name.Pos(), "error")
					}
				}
			case *ast.FuncDecl:
				if d.Recv == nil || d.Name.Name != "Error" {
					continue
				}
				t := d.Recv.List[0].Type
				if star, ok := t.(*ast.StarExpr); ok {
					t = star.X
				}
				if id, ok := t.(*ast.Ident); ok && id.IsExported() {
					found[s.dir()+"."+id.Name] = s.at(d.Pos(), "error")
				}
			}
		}
	}
	return found
}

func valueNames(d *ast.GenDecl) []*ast.Ident {
	if d.Tok != token.VAR {
		return nil
	}
	var names []*ast.Ident
	for _, spec := range d.Specs {
		names = append(names, spec.(*ast.ValueSpec).Names...)
	}
	return names
}

// advice is the rule: every error that a caller can test for has a row in docs/ERRORS.md with its cause and what to do; every
// row is about an error that there is.
func advice(all []*source, text string) []string {
	rows, problems := rows("ERRORS.md", text, 3)
	existing := failures(all)
	return append(problems, compare("ERRORS.md", rows, existing, existing)...)
}

func TestEveryErrorIsInTheTable(t *testing.T) {
	all := sources(t)
	require.NotEmpty(t, failures(all))
	none(t, advice(all, document(t, "ERRORS.md")))
}
