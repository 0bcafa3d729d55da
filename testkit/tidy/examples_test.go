package tidy_test

import (
	"go/ast"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// exampledPackages are the packages whose functions and methods all stand in an example.
var exampledPackages = []string{"system"}

// selfExplaining are those that need none: those of interfaces, and those with which a replica group is wired, not used.
var selfExplaining = []string{
	"String", "ExtensionID", "Enabled", "Handle", "WithAttrs", "WithGroup",
	"Confirmed", "SetInSync", "FollowLeader", "AwaitConfirmed",
}

// examples is the rule that every exported function and method of a package is used in one of its examples.
func examples(all []*source) []string {
	var problems []string
	for _, dir := range exampledPackages {
		used := map[string]bool{}
		for _, s := range all {
			if s.dir() == dir && s.test() {
				for name := range exampled(s.tree) {
					used[name] = true
				}
			}
		}
		for _, s := range all {
			if s.dir() != dir || s.test() {
				continue
			}
			for _, d := range s.tree.Decls {
				f, ok := d.(*ast.FuncDecl)
				if ok && f.Name.IsExported() && exportedReceiver(f) && !slices.Contains(selfExplaining, f.Name.Name) && !used[f.Name.Name] {
					problems = append(problems, s.at(f.Pos(), "%s stands in no example", f.Name.Name))
				}
			}
		}
	}
	return problems
}

// exampled are the names that the examples of a file select.
func exampled(file *ast.File) map[string]bool {
	names := map[string]bool{}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Example") {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if sel, ok := n.(*ast.SelectorExpr); ok {
				names[sel.Sel.Name] = true
			}
			return true
		})
	}
	return names
}

func TestEveryMethodOfTheStoreStandsInAnExample(t *testing.T) { none(t, examples(sources(t))) }

func TestRuleExamples(t *testing.T) {
	api := code(t, "system/a.go", "type Store struct{}\nfunc (s *Store) Put() {}\nfunc (s *Store) Get() {}\nfunc (s *Store) String() string { return \"\" }\nfunc (s *Store) hidden() {}\n")
	tests := code(t, "system/a_test.go", "func TestIt() { s.Get() }\nfunc ExampleStore() { s.Put() }\n")
	got := examples([]*source{api, tests})
	require.Len(t, got, 1)
	require.Contains(t, got[0], "Get stands in no example")
}
