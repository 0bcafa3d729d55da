package tidy_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the import path of the repository's root.
const module = "github.com/actormq/actormq"

// root is the repository's folder, as seen from this package.
const root = "../.."

// source is one Go file.
type source struct {
	path string // from the repository's root, with slashes
	text []byte
	set  *token.FileSet
	tree *ast.File

	imports map[string]string // import path by the name that the package has in the file
}

// parse reads one Go file.
func parse(name string, text []byte) (*source, error) {
	s := &source{path: name, text: text, set: token.NewFileSet()}
	var err error
	s.tree, err = parser.ParseFile(s.set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s.imports = map[string]string{}
	for _, spec := range s.tree.Imports {
		target := strings.Trim(spec.Path.Value, `"`)
		as := path.Base(target)
		if spec.Name != nil {
			as = spec.Name.Name
		}
		s.imports[as] = target
	}
	return s, nil
}

// dir is the file's folder: the import path without the module.
func (s *source) dir() string { return path.Dir(s.path) }

// test tells whether the file is one of tests.
func (s *source) test() bool { return strings.HasSuffix(s.path, "_test.go") }

// external tells whether the file belongs to a test package beside the package that it tests.
func (s *source) external() bool { return strings.HasSuffix(s.tree.Name.Name, "_test") }

// at says where a problem is.
func (s *source) at(pos token.Pos, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", s.path, s.set.Position(pos).Line, fmt.Sprintf(format, args...))
}

// within tells whether a folder is a tree's root or lies below it.
func within(dir, tree string) bool { return dir == tree || strings.HasPrefix(dir, tree+"/") }

// walk calls fn for every file of the repository that is no build product.
func walk(fn func(name string, nested bool) error) error {
	nested := map[string]bool{}
	return fs.WalkDir(os.DirFS(root), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if e.Name() == ".git" || e.Name() == "target" || name == "bin" || name == "store" {
				return fs.SkipDir
			}
			_, err := os.Stat(filepath.Join(root, name, "go.mod"))
			nested[name] = nested[path.Dir(name)] || e.Name() == "testdata" || name != "." && err == nil
			return nil
		}
		if !e.Type().IsRegular() {
			return nil
		}
		return fn(name, nested[path.Dir(name)])
	})
}

// load reads all Go files of this module, once.
var load = sync.OnceValues(func() ([]*source, error) {
	var all []*source
	err := walk(func(name string, nested bool) error {
		if nested || path.Ext(name) != ".go" || strings.HasSuffix(name, ".pb.go") { // what protoc generates has its own style
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		s, err := parse(name, text)
		all = append(all, s)
		return err
	})
	return all, err
})

func sources(t *testing.T) []*source {
	t.Helper()
	all, err := load()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

// check applies a rule to every file and fails with all problems at once.
func check(t *testing.T, rule func(*source) []string) {
	t.Helper()
	var all []string
	for _, s := range sources(t) {
		all = append(all, rule(s)...)
	}
	none(t, all)
}

func none(t *testing.T, problems []string) {
	t.Helper()
	if len(problems) > 0 {
		require.Fail(t, fmt.Sprintf("%d problems", len(problems)), strings.Join(problems, "\n"))
	}
}

// selector returns the import path and the name of an expression like pkg.Name; empty when it is none.
func (s *source) selector(e ast.Expr) (target, name string) {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "", ""
	}
	x, ok := sel.X.(*ast.Ident)
	if !ok {
		return "", ""
	}
	return s.imports[x.Name], sel.Sel.Name
}
