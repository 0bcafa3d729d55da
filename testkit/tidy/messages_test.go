package tidy_test

import (
	"go/ast"
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// vocabulary are the packages whose types actors say to each other.
var vocabulary = []string{"messages", "actors"}

// types returns the types of the vocabulary by name ("messages.PutMessage"), with the place of each; interfaces are no
// messages.
func types(all []*source) map[string]string {
	found := map[string]string{}
	for _, s := range all {
		if s.test() || !slices.Contains(vocabulary, s.dir()) {
			continue
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				if _, isInterface := spec.Type.(*ast.InterfaceType); !isInterface {
					found[s.dir()+"."+spec.Name.Name] = s.at(spec.Pos(), "type")
				}
			}
			return true
		})
	}
	return found
}

// linked returns the types of the vocabulary that stand in a combining mailbox by a link of their own.
func linked(all []*source) map[string]string {
	found := map[string]string{}
	for _, s := range all {
		if s.test() || !slices.Contains(vocabulary, s.dir()) {
			continue
		}
		for _, d := range s.tree.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || f.Name.Name != "MailboxLink" {
				continue
			}
			t := f.Recv.List[0].Type
			if star, ok := t.(*ast.StarExpr); ok {
				t = star.X
			}
			if id, ok := t.(*ast.Ident); ok {
				found[s.dir()+"."+id.Name] = s.at(f.Pos(), "linked")
			}
		}
	}
	return found
}

// received returns the types of the vocabulary that an actor tells apart by a type switch: in its Receive, or where it takes
// its batches.
func received(all []*source) map[string]string {
	found := map[string]string{}
	for _, s := range all {
		if s.test() || !within(s.dir(), "actors") && !within(s.dir(), "system") {
			continue
		}
		ast.Inspect(s.tree, func(n ast.Node) bool {
			sw, ok := n.(*ast.TypeSwitchStmt)
			if !ok {
				return true
			}
			for _, clause := range sw.Body.List {
				for _, e := range clause.(*ast.CaseClause).List {
					if name := s.said(e); name != "" {
						found[name] = s.at(e.Pos(), "received")
					}
				}
			}
			return true
		})
	}
	return found
}

// said returns the name of a case's type when it belongs to the vocabulary.
func (s *source) said(e ast.Expr) string {
	if star, ok := e.(*ast.StarExpr); ok {
		e = star.X
	}
	target, name := s.selector(e)
	if dir := path.Base(target); slices.Contains(vocabulary, dir) && target == module+"/"+dir {
		return dir + "." + name
	}
	return ""
}

// conversation is the rule: what is received or linked has a row in docs/MESSAGES.md that says who sends it, who gets it, what
// is answered and what bounds it; every row is about a type that there is.
func conversation(all []*source, text string) []string {
	rows, problems := rows("MESSAGES.md", text, 5)
	existing := types(all)
	needed := received(all)
	for name, at := range linked(all) {
		needed[name] = at
	}
	for name := range needed {
		if _, ok := existing[name]; !ok {
			delete(needed, name) // an interface
		}
	}
	return append(problems, compare("MESSAGES.md", rows, needed, existing)...)
}

func TestEveryMessageIsInTheTable(t *testing.T) {
	all := sources(t)
	require.NotEmpty(t, received(all))
	require.NotEmpty(t, linked(all))
	none(t, conversation(all, document(t, "MESSAGES.md")))
}
