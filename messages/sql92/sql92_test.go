package sql92_test

import (
	"embed"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/sql92"
)

//go:embed testdata/*.txt
var vectors embed.FS

// recorded are the properties with which the vectors were recorded.
var recorded = map[string]string{
	"a": "5", "f": "3.5", "s": "abc", "t": "true", "e": "", "big": "99999999999", "neg": "-7",
	"z": "-0.0", "x1": " 5 ", "n": "NaN", "d": "5d", "mx": "2147483648", "pl": "+5", "T": "TRUE",
}

func lookup(name string) (string, bool) {
	value, found := recorded[name]
	return value, found
}

// say is an expression's result in the words of the vectors.
func say(expression string) string {
	f, err := sql92.Compile(expression)
	if err != nil {
		return "COMPILEERR"
	}
	return map[sql92.Result]string{
		sql92.True: "true", sql92.False: "false", sql92.Null: "null", sql92.Failed: "EVALERR",
	}[f.Evaluate(lookup)]
}

func TestEveryVectorOfRocketMQ(t *testing.T) {
	for _, file := range []string{"testdata/vectors.txt", "testdata/random.txt"} {
		text, err := vectors.ReadFile(file)
		require.NoError(t, err)
		n := 0
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSuffix(line, "\n")
			expression, want, ok := strings.Cut(line, "\t")
			if strings.HasPrefix(line, "#") || !ok {
				continue
			}
			n++
			expression = strings.NewReplacer("<EMPTY>", "", "<BLANK>", "  ", `\n`, "\n").Replace(expression)
			require.Equal(t, want, say(expression), "%q", expression)
		}
		require.Greater(t, n, 100, file)
	}
}

func match(t *testing.T, expression string, properties messages.Properties) bool {
	t.Helper()
	f, err := sql92.Compile(expression)
	require.NoError(t, err)
	require.Equal(t, expression, f.String())
	return f.Match(properties)
}

func TestMatchReadsTheStoredProperties(t *testing.T) {
	p := messages.Properties("a\x015\x02TAGS\x01x\x02a\x017\x02empty\x01\x02")
	require.True(t, match(t, "a = 7 AND TAGS = 'x'", p), "of equal names the last one counts")
	require.False(t, match(t, "A = 7", p), "names are told apart by case")
	require.True(t, match(t, "empty IS NULL", p), "an empty value is none, as for every reader of the stored form")
	require.True(t, match(t, "a IS NULL", ""))
}

func TestMatchWithManyProperties(t *testing.T) {
	var parts []string
	pairs := map[string]string{}
	for i := range 40 {
		parts = append(parts, fmt.Sprintf("p%d = %d", i, i))
		pairs[fmt.Sprintf("p%d", i)] = fmt.Sprint(i)
	}
	all := strings.Join(parts, " AND ")
	require.True(t, match(t, all, messages.PropertiesOf(pairs)))
	pairs["p39"] = "40"
	require.False(t, match(t, all, messages.PropertiesOf(pairs)))
}

func TestMatchDoesNotAllocate(t *testing.T) {
	f, err := sql92.Compile("price > 1.5 AND region IN ('eu','us') AND n BETWEEN 1 AND 9 AND NOT (s = 'x') AND bad <> 5")
	require.NoError(t, err)
	for _, bad := range []string{"6", "abc", "1.5"} {
		p := messages.PropertiesOf(map[string]string{"price": "2.25", "region": "us", "n": "3", "s": "y", "bad": bad})
		require.Equal(t, bad == "6", f.Match(p))
		require.Zero(t, testing.AllocsPerRun(100, func() { f.Match(p) }), bad)
	}
}

func TestLimits(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("(", 201) + "a = 1" + strings.Repeat(")", 201), strings.Repeat("NOT ", 300) + "a",
		strings.Repeat("- ", 300) + "a = 1", "a = 1" + strings.Repeat(" OR a = 1", sql92.MaxBytes),
	} {
		_, err := sql92.Compile(text)
		require.ErrorIs(t, err, sql92.ErrExpression)
	}
	require.True(t, match(t, strings.Repeat("(", 100)+"a = 1"+strings.Repeat(")", 100), "a\x011"))
	long := "a = 1" + strings.Repeat(" OR a = 1", 3000) + " OR a = 2"
	require.True(t, match(t, long, "a\x012"))
}

func TestErrorsSayWhere(t *testing.T) {
	for text, want := range map[string]string{
		"a > 3 AND (":                "the text ends at byte 11, want a value",
		"a = 5 !":                    `unexpected "!" at byte 6`,
		"a = 'x":                     "the text at byte 4 has no closing quote",
		"a IN (5)":                   `unexpected "5)" at byte 6, want text in quotes`,
		"a > 'x'":                    "only numbers and properties",
		"5":                          "it is no condition",
		"a = 9999999999999999999999": "does not fit into 64 bits",
		"a BETWEEN 9 AND 1":          "the wrong way round",
		"a = 1 /* x":                 "the comment at byte 6 has no end",
		"":                           "the text ends at byte 0",
	} {
		_, err := sql92.Compile(text)
		require.ErrorIs(t, err, sql92.ErrExpression, text)
		require.ErrorContains(t, err, want, text)
	}
}

func FuzzCompile(f *testing.F) {
	for _, text := range []string{
		"a = 5 AND b IN ('x','y') OR NOT (c BETWEEN 1 AND 2.5e3)", "a IS NOT NULL -- c\n/* d */ <> TRUE", "(((", "a = 'it''s", "-+.5e", "0x\x80",
	} {
		f.Add(text, "5")
	}
	f.Fuzz(func(t *testing.T, text, property string) {
		compiled, err := sql92.Compile(text)
		if err != nil {
			require.ErrorIs(t, err, sql92.ErrExpression)
			return
		}
		once := compiled.Evaluate(func(string) (string, bool) { return property, property != "" })
		again := compiled.Evaluate(func(string) (string, bool) { return property, property != "" })
		require.Equal(t, once, again)
		p := messages.PropertiesOf(map[string]string{"a": property, "b": "x", "c": "-1"})
		value := func(name string) (string, bool) { return p.Get(name) }
		require.Equal(t, compiled.Evaluate(value) == sql92.True, compiled.Match(p))
	})
}

func BenchmarkMatch(b *testing.B) {
	f, err := sql92.Compile("price > 1.5 AND region IN ('eu','us') AND n BETWEEN 1 AND 9")
	require.NoError(b, err)
	p := messages.PropertiesOf(map[string]string{"price": "2.25", "region": "us", "n": "3", "UNIQ_KEY": "x", "CLUSTER": "c"})
	b.ReportAllocs()
	for b.Loop() {
		f.Match(p)
	}
}
