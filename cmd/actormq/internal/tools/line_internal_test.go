package tools

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestShownFields(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain": "plain", "müsli": "müsli", "a b": `"a b"`, `a"b`: `"a\"b"`, "a=b": `"a=b"`, "a\nb": `"a\nb"`,
		"\x1b[2J": `"\x1b[2J"`, "\xff": `"\xff"`, "\u202e": `"\u202e"`,
	} {
		require.Equal(t, want, Shown(text))
	}
	text := func(body string) string {
		_, end, _ := strings.Cut(Line{Body: &body}.String(), " keys= ")
		return end
	}
	require.Equal(t, `body={"a": 1}`, text(`{"a": 1}`))
	require.Equal(t, `body="\"quoted\""`, text(`"quoted"`))
	require.Equal(t, "body=", text(""))
}
