package tidy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// code makes a source of a sample; the package clause is that of the folder, unless the sample has one.
func code(t *testing.T, name, text string) *source {
	t.Helper()
	if !strings.Contains(text, "package ") {
		text = "package sample\n" + text
	}
	s, err := parse(name, []byte(text))
	require.NoError(t, err)
	return s
}

// ruleCase is a sample, and what its rule must find in it: one part of each problem, in order.
type ruleCase struct {
	name, path, text string
	want             []string
}

func checkRule(t *testing.T, rule func(*source) []string, cases []ruleCase) {
	t.Helper()
	for _, c := range cases {
		got := rule(code(t, c.path, c.text))
		require.Len(t, got, len(c.want), "%s: %v", c.name, got)
		for i := range got {
			require.Contains(t, got[i], c.want[i], c.name)
		}
	}
}

func importing(paths ...string) string {
	return "import (\n\"" + strings.ReplaceAll(strings.Join(paths, "\"\n\""), "ours/", module+"/") + "\"\n)\n"
}

func TestRuleImports(t *testing.T) {
	checkRule(t, imports, []ruleCase{
		{"messages", "messages/a.go", importing("fmt", "net/netip", "ours/messages/fastjson"), nil},
		{
			"messages is first", "messages/a.go", importing("ours/segments", "github.com/rs/zerolog", "os"),
			[]string{"messages is below", "not in this part", "not in this part"},
		},
		{"segments", "segments/index/a.go", importing("ours/messages", "ours/segments/vfs", "unsafe"), nil},
		{
			"segments has no actors", "segments/index/a.go",
			importing("ours/actors", "github.com/asynkron/protoactor-go/actor", "golang.org/x/sys/unix", "os"),
			[]string{"segments is below", "not in this part", "not in this part", "not in this part"},
		},
		{"only vfs has the system", "segments/vfs/a.go", importing("golang.org/x/sys/unix", "os", "syscall"), nil},
		{"the codec is pure", "segments/record/a.go", importing("time", "hash/crc32"), []string{"does without"}},
		{"an actor", "actors/writer/a.go", importing("ours/actors", "ours/actors/mailbox", "ours/segments/record",
			"github.com/asynkron/protoactor-go/actor", "github.com/rs/zerolog", "sync/atomic"), nil},
		{"an actor's own tree", "actors/gateway/a.go", importing("ours/actors/gateway/frames", "net"), nil},
		{
			"no sibling", "actors/writer/a.go", importing("ours/actors/flusher", "ours/actors/mailboxes", "ours/system", "sync", "net"),
			[]string{"siblings", "siblings", "actors is below", "does without", "not in this part"},
		},
		{"the root of actors", "actors/a.go", importing("ours/actors/mailbox", "ours/segments"), []string{"imports none of them"}},
		{"system", "system/a.go", importing("ours/actors/writer", "ours/system/ext", "github.com/rs/zerolog", "log/slog"), nil},
		{
			"system is below cmd", "system/a.go", importing("ours/cmd/actormq", "github.com/spf13/cobra", "net", "log"),
			[]string{"system is below", "not in this part", "not in this part", "not in this part"},
		},
		{"cmd", "cmd/actormq/a.go", importing("ours/system", "ours/segments/vfs", "github.com/spf13/cobra", "os"), nil},
		{"no testkit in production", "cmd/actormq/a.go", importing("ours/testkit/memfs"), []string{"only tests use testkit"}},
		{"testkit in tests", "segments/a_test.go", importing("ours/testkit/memfs", "github.com/stretchr/testify/require", "os"), nil},
		{"tests inside keep the layers", "segments/a_test.go", importing("ours/system"), []string{"segments is below"}},
		{"tests outside are free", "segments/a_test.go", "package segments_test\n" + importing("ours/system", "ours/testkit/memfs"), nil},
		{"testify in production", "testkit/golden/a.go", importing("github.com/stretchr/testify/require", "ours/cmd/actormq"), nil},
		{"a new module", "cmd/actormq/a.go", importing("example.org/fine/thing"), []string{"without a decision"}},
		{"a new folder", "util/a.go", importing("ours/messages"), []string{"in no layer"}},
	})
	checkRule(t, onlyRequire, []ruleCase{
		{"require", "a/a_test.go", "package a_test\n" + importing("github.com/stretchr/testify/require"), nil},
		{"assert", "a/a_test.go", "package a_test\n" + importing("github.com/stretchr/testify/assert"), []string{"require only"}},
	})
}

func TestRuleEmbedded(t *testing.T) {
	require.Empty(t, embedded([]string{
		" fmt", " net/http", module + " " + module + "/actors/writer", "github.com/rs/zerolog github.com/rs/zerolog", "",
	}))
	for _, line := range []string{
		module + " " + module + "/system/gateway", module + " " + module + "/messages/remoting",
		"github.com/spf13/cobra github.com/spf13/cobra", "go.etcd.io/etcd/client/v3 go.etcd.io/etcd/client/v3",
		"github.com/apache/rocketmq-client-go/v2 github.com/apache/rocketmq-client-go/v2/producer",
	} {
		require.Len(t, embedded([]string{line}), 1, line)
	}
}

func TestRuleUndecided(t *testing.T) {
	const mod = "require (\n\tgithub.com/spf13/cobra v1.0.0\n\texample.org/x v1.0.0 // indirect\n)\n"
	require.Empty(t, undecided(mod, "| `github.com/spf13/cobra` | commands |"))
	require.Len(t, undecided(mod, "nothing"), 1)
	require.Len(t, undecided(strings.Replace(mod, " // indirect", "", 1), "| `github.com/spf13/cobra` |"), 2)
}

func TestRuleShape(t *testing.T) {
	long := func(lines int) string { return "func f() {\n" + strings.Repeat("_ = 1\n", lines-2) + "}\n" }
	checkRule(t, functionLength, []ruleCase{
		{"at the limit", "a/a.go", long(maxFunction), nil},
		{"over it", "a/a_test.go", long(maxFunction + 1), []string{"f has 71 lines, limit 70"}},
	})
	file := func(lines int) string { return "package a\n" + strings.Repeat("\n", lines-1) }
	checkRule(t, fileLength, []ruleCase{
		{"at the limit", "a/a.go", file(maxFile), nil},
		{"over it", "a/a.go", file(maxFile + 1), []string{"601 lines, limit 600"}},
		{"a test", "a/a_test.go", file(maxTestFile), nil},
		{"a long test", "a/a_test.go", file(maxTestFile + 1), []string{"1001 lines, limit 1000"}},
	})
	checkRule(t, formatted, []ruleCase{
		{"tidy", "a/a.go", "package a\n\nvar x = 1\n", nil},
		{"untidy", "a/a.go", "package a\nvar  x=1\n", []string{"run gofmt"}},
	})
}

func TestRulePackageDocs(t *testing.T) {
	good := []*source{
		code(t, "a/doc.go", "// Package a is good.\npackage a"), code(t, "a/b.go", "package a"),
		code(t, "c/doc.go", "// Command c runs.\npackage main"), code(t, "a/a_test.go", "package a_test"),
	}
	require.Empty(t, packageDocs(good))
	bad := []*source{
		code(t, "a/doc.go", "package a"), code(t, "b/b.go", "// Package b is elsewhere.\npackage b"),
		code(t, "b/doc.go", "// Package b is here.\npackage b"), code(t, "c/doc.go", "// Nothing.\npackage c"), code(t, "d/d.go", "package d"),
	}
	problems := packageDocs(bad)
	require.Len(t, problems, 4, "%v", problems)
	for i, want := range []string{"a: no package comment", "b/b.go:1", "c/doc.go:1", "d: no package comment"} {
		require.Contains(t, problems[i], want)
	}
}

func TestRuleDocumented(t *testing.T) {
	const bare = `
func F() {}
func f() {}
type T struct{}
func (t *T) M() {}
func (t *T) String() string { return "" }
type g[K any] struct{}
func (g[K]) M() {}
type G[K any] struct{}
func (*G[K]) M() {}
const C = 1
var (
	V = 1
	v = 1
)
type (
	U int
)
`
	const said = `
// F is said.
func F() {}
// T is said.
type T struct{}
// M is said.
func (t *T) M() {}
// The constants.
const (
	C = 1
	D = 2
)
var (
	// V is said.
	V = 1
	W = 2 // so is W
)
type (
	// U is said.
	U int
)
`
	checkRule(t, documented, []ruleCase{
		{"said", "segments/a.go", said, nil},
		{"bare", "actors/x/a.go", bare, []string{"F has", "T has", "M has", "G has", "M has", "C has", "V has", "U has"}},
		{"a command", "cmd/actormq/a.go", bare, nil},
		{"a test", "system/a_test.go", bare, nil},
	})
}

func TestRuleSleeping(t *testing.T) {
	const sleeps = "import \"time\"\nfunc f(c chan int) {\ntime.Sleep(1)\n<-time.After(1)\n" +
		"select {\ncase <-time.After(1):\n<-time.After(2)\ncase <-c:\n}\ng := time.Sleep\ng(1)\n}"
	checkRule(t, sleeping, []ruleCase{
		{"production", "system/a.go", sleeps, []string{":4: time.Sleep", ":5: a sleep", ":8: a sleep", ":11: time.Sleep"}},
		{"a test", "system/a_test.go", sleeps, []string{":4: time.Sleep", ":11: time.Sleep"}},
		{"another name", "system/a.go", "import t \"time\"\nfunc f() { t.Sleep(1) }", []string{"time.Sleep"}},
		{"another Sleep", "system/a.go", "import \"x/y/clock\"\nfunc f() { clock.Sleep(1) }", nil},
	})
}

func TestRulePrinting(t *testing.T) {
	const prints = "import \"fmt\"\nfunc ExampleF() { fmt.Println(1) }\nfunc g() { fmt.Printf(\"\"); fmt.Fprintln(nil); println(1) }"
	checkRule(t, printing, []ruleCase{
		{"production", "system/a.go", prints, []string{"fmt.Println", "fmt.Printf", "println"}},
		{"a test", "system/a_test.go", prints, []string{"fmt.Printf", "println"}},
		{"a command", "cmd/actormq/a.go", prints, nil},
		{"a tool", "testkit/peer/a.go", "package main\n" + prints, nil},
	})
}

func TestRuleLocking(t *testing.T) {
	const locks = "import \"sync\"\ntype a struct{ mu sync.Mutex; c chan int }\n" +
		"func (x *a) f() {\nx.c <- 1\n<-x.c\nclose(x.c)\nselect {}\nvar _ sync.Locker\n}"
	want := []string{"sync.Mutex", "a channel:", "operation", "operation", "operation", "operation", "sync.Locker"}
	checkRule(t, locking, []ruleCase{
		{"writer", "actors/writer/a.go", locks, want},
		{"mailbox", "actors/mailbox/a.go", locks, want},
		{"a test", "actors/writer/a_test.go", locks, nil},
		{"elsewhere", "actors/gateway/a.go", locks, nil},
		{"atomics", "actors/writer/a.go", "import \"sync/atomic\"\nvar x atomic.Int64\nvar y = -1", nil},
	})
	const open = "type Actor struct { State int; own int }\ntype tail struct { Actor; End int }\ntype Config struct { Log int }"
	checkRule(t, secret, []ruleCase{
		{"writer", "actors/writer/a.go", open, []string{"Actor.State", "tail embeds", "tail.End"}},
		{"elsewhere", "actors/flusher/a.go", open, nil},
	})
}

func TestRuleWords(t *testing.T) {
	require.Empty(t, wording("a.go", []byte("passions and works, TOPIC_XXXX, todo\nhttps://example.org/work\n")))
	text := strings.Join([]string{"One Ses" + "sion", "see /wo" + "rk/x", "GOPROXY=https://proxy.go" + "lang.org", "TO" + "DO: more", "<<<<" + "<<< HEAD"}, "\n")
	require.Len(t, wording("a.md", []byte(text)), 5)
	require.True(t, isText([]byte("text")))
	require.False(t, isText([]byte("bin\x00ary")))
}

func TestRuleLinks(t *testing.T) {
	exists := func(name string) bool { return name == "docs/adr" || name == "README.md" }
	require.Empty(t, deadLinks("docs/A.md", []byte("[a](adr) [b](../README.md#top) [c](https://example.org/x) [d](#here)"), exists))
	require.Equal(t, []string{"docs/A.md: the link to B.md leads nowhere"}, deadLinks("docs/A.md", []byte("see [b](B.md)"), exists))
}

func TestRuleMentions(t *testing.T) {
	text := []byte("`TestA` and `FuzzB`, TestC, `Tests`, `go test -run TestD`")
	require.Equal(t, []string{"a.md: there is no FuzzB"}, unknownTests("a.md", text, map[string]bool{"TestA": true}))
}

func TestRuleConversation(t *testing.T) {
	all := []*source{
		code(t, "messages/a.go", "package messages\ntype Put struct{}\nfunc (p *Put) MailboxLink() *Put { return p }\n"+
			"type Tick struct{}\ntype Linked interface{ MailboxLink() }\ntype Fact struct{}"),
		code(t, "actors/a.go", "package actors\ntype Ready struct{}"),
		code(t, "actors/writer/a.go", importing("ours/messages", "ours/actors")+
			"func f(m any) {\nswitch m.(type) {\ncase *messages.Tick, actors.Ready:\ncase messages.Linked:\ncase error:\n}\n}"),
	}
	const good = "# Messages\n| message | from | to | answer | bound |\n|---|---|---|---|---|\n" +
		"| `messages.Put` | caller | writer | status | admission |\n| `messages.Tick` | itself | itself | none | one |\n" +
		"| `actors.Ready` | allocator | writer | none | two |\n| `messages.Fact` | writer | events | none | one |\n"
	require.Empty(t, conversation(all, good))
	for text, want := range map[string]string{
		strings.Replace(good, "| `messages.Put`", "| messages.Put", 1):              "messages.Put has no row",
		strings.Replace(good, "`messages.Tick`", "`messages.Tock`", 1):              "there is no messages.Tock",
		strings.Replace(good, "`actors.Ready`", "`Ready`", 1):                       "actors.Ready has no row",
		strings.Replace(good, "| itself | none |", "| – | none |", 1):               "has an empty column",
		strings.Replace(good, "| none | two |", "| none |", 1):                      "has 4 columns instead of 5",
		good + "| `messages.Fact` | writer | events | none | one |\n":               "has a row already",
		strings.Replace(good, "| `messages.Fact`", "| `messages.Linked`", 1):        "there is no messages.Linked",
		strings.ReplaceAll(strings.ReplaceAll(good, "`actors.", "`"), "Fact", "No"): "there is no Ready",
	} {
		require.Contains(t, strings.Join(conversation(all, text), "\n"), want)
	}
}

func TestRuleAdvice(t *testing.T) {
	all := []*source{
		code(t, "segments/vfs/a.go", "package vfs\nvar (\nErrLocked = f()\nerrOwn = f()\n)\nvar Errands = 1\n"+
			"type PathError struct{}\nfunc (*PathError) Error() string { return \"\" }\ntype own struct{}\nfunc (own) Error() string { return \"\" }"),
		code(t, "testkit/memfs/a.go", "package memfs\nvar ErrCrash = f()"),
	}
	const good = "| error | cause | what to do |\n|---|---|---|\n| `segments/vfs.ErrLocked` | open elsewhere | stop the other |\n" +
		"| `segments/vfs.PathError` | any | look at the cause |\n"
	require.Empty(t, advice(all, good))
	require.Len(t, advice(all, strings.ReplaceAll(good, "segments/vfs", "vfs")), 4)
	require.Len(t, advice(all, strings.Replace(good, "stop the other", "", 1)), 1)
}
