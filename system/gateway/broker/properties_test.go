package broker_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/system/gateway/broker"
)

func TestParseProperties(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"":                                      {},
		"a=b\n":                                 {"a": "b"},
		"a=b\r\nc : d":                          {"a": "b", "c": "d"},
		"# comment\n! another\n\n a = b = c \n": {"a": "b = c"},
		"a=\n":                                  {"a": ""},
		`a\=b=c\:d`:                             {"a=b": "c:d"},
		`path=C\:\\store\tx`:                    {"path": "C:\\store\tx"},
		`u=\u4e2d\n\r\f`:                        {"u": "中\n\r\f"},
		"a=1\na=2":                              {"a": "2"},
	} {
		got, err := broker.ParseProperties([]byte(text))
		require.NoError(t, err, "%q", text)
		require.Equal(t, want, got, "%q", text)
	}
	for text, why := range map[string]string{
		"nonsense": "has no value", "=x": "has no name", `a=\u12`: "bad escape", `a=\u12gg`: "bad escape",
		`a=b\`: "ends in a backslash", `a\`: "has no value",
	} {
		_, err := broker.ParseProperties([]byte(text))
		require.ErrorIs(t, err, broker.ErrProperties, "%q", text)
		require.ErrorContains(t, err, why, "%q", text)
	}
	_, err := broker.ParseProperties([]byte(strings.Repeat("x", 5) + "=1\n" + many(1100)))
	require.ErrorContains(t, err, "more than")
}

func many(n int) string {
	b := strings.Builder{}
	for range n {
		b.WriteString(strings.Repeat("k", b.Len()%1000+1) + "=v\n")
	}
	for i := range n {
		b.WriteString("n" + strings.Repeat("0", i%50) + strings.Repeat("1", i/50) + "=v\n")
	}
	return b.String()
}

func TestPropertiesTextIsReadBack(t *testing.T) {
	options := map[string]string{"b": "2", "a": "1"}
	text := broker.PropertiesText(options)
	require.Equal(t, "a=1\nb=2\n", string(text))
	got, err := broker.ParseProperties(text)
	require.NoError(t, err)
	require.Equal(t, options, got)
}

func FuzzParseProperties(f *testing.F) {
	f.Add([]byte("a=b\n# c\nd\\=e : \\u4e2d"))
	f.Add([]byte("=\\"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := broker.ParseProperties(text)
		if err != nil {
			require.ErrorIs(t, err, broker.ErrProperties)
			return
		}
		for name := range got {
			require.NotEmpty(t, name)
		}
	})
}
