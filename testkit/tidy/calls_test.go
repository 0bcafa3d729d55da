package tidy_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// sleeping: nobody waits for a state by the clock, in tests neither. In production code a statement that only receives from
// time.After is a sleep as well; in a test it may stand inside a synctest bubble, whose clock jumps.
func sleeping(s *source) []string {
	var problems []string
	waits := map[ast.Stmt]bool{} // what a select waits for is no sleep
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if target, name := s.selector(n); target == "time" && name == "Sleep" {
				problems = append(problems, s.at(n.Pos(), "time.Sleep: wait for the state, or use testing/synctest"))
			}
		case *ast.CommClause:
			waits[n.Comm] = true
		case *ast.ExprStmt:
			if !s.test() && !waits[n] && receivesFromAfter(s, n.X) {
				problems = append(problems, s.at(n.Pos(), "a sleep: select on what can end the waiting too"))
			}
		}
		return true
	})
	return problems
}

func receivesFromAfter(s *source, e ast.Expr) bool {
	receive, ok := e.(*ast.UnaryExpr)
	if !ok || receive.Op != token.ARROW {
		return false
	}
	call, ok := receive.X.(*ast.CallExpr)
	if !ok {
		return false
	}
	target, name := s.selector(call.Fun)
	return target == "time" && name == "After"
}

func TestNobodySleeps(t *testing.T) { check(t, sleeping) }

// printing: only programs print, that is cmd and the tools of the test kit. Examples print what they are compared with.
func printing(s *source) []string {
	if within(s.dir(), "cmd") || s.tree.Name.Name == "main" {
		return nil
	}
	var problems []string
	for _, d := range s.tree.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && s.test() && strings.HasPrefix(f.Name.Name, "Example") {
			continue
		}
		ast.Inspect(d, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			target, name := s.selector(call.Fun)
			if target == "fmt" && strings.HasPrefix(name, "Print") {
				problems = append(problems, s.at(n.Pos(), "fmt.%s: only programs print", name))
			}
			if id, ok := call.Fun.(*ast.Ident); ok && (id.Name == "print" || id.Name == "println") {
				problems = append(problems, s.at(n.Pos(), "%s: only programs print", id.Name))
			}
			return true
		})
	}
	return problems
}

func TestOnlyProgramsPrint(t *testing.T) { check(t, printing) }

// lockless are the packages whose state nothing but the mailbox guards: the writer and the mailbox itself.
var lockless = []string{"actors/writer", "actors/mailbox"}

// locking: the writer's mailbox is its lock. No lock of another kind guards its state, and it waits for no channel.
func locking(s *source) []string {
	if s.test() || !slices.Contains(lockless, s.dir()) {
		return nil
	}
	var problems []string
	found := func(n ast.Node, what string) {
		problems = append(problems, s.at(n.Pos(), "%s: the mailbox is the lock", what))
	}
	ast.Inspect(s.tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			if target, name := s.selector(n); target == "sync" {
				found(n, "sync."+name)
			}
		case *ast.ChanType:
			found(n, "a channel")
		case *ast.SendStmt, *ast.SelectStmt:
			found(n, "a channel operation")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				found(n, "a channel operation")
			}
		case *ast.CallExpr:
			if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "close" {
				found(n, "a channel operation")
			}
		}
		return true
	})
	return problems
}

func TestNoLockGuardsTheWriter(t *testing.T) { check(t, locking) }

// secret: nobody else can reach the state of the writer and of the mailbox, as no struct there has an exported field, apart
// from what they are made of (Config, Options).
func secret(s *source) []string {
	if s.test() || !slices.Contains(lockless, s.dir()) {
		return nil
	}
	var problems []string
	ast.Inspect(s.tree, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name == "Config" || spec.Name.Name == "Options" {
			return true
		}
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		for _, f := range fields.Fields.List {
			if len(f.Names) == 0 {
				problems = append(problems, s.at(f.Pos(), "%s embeds a type: its methods could touch the state", spec.Name.Name))
			}
			for _, name := range f.Names {
				if name.IsExported() {
					problems = append(problems, s.at(name.Pos(), "%s.%s is exported: others could touch the state", spec.Name.Name, name.Name))
				}
			}
		}
		return true
	})
	return problems
}

func TestTheWritersStateIsItsOwn(t *testing.T) { check(t, secret) }
