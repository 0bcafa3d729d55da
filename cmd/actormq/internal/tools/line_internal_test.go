package tools

import (
	"bytes"
	"compress/zlib"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestInflateIsBounded(t *testing.T) {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, err := z.Write(make([]byte, 1000))
	require.NoError(t, errors.Join(err, z.Close()))
	plain, err := inflate(packed.Bytes(), 1000)
	require.NoError(t, err)
	require.Equal(t, make([]byte, 1000), plain)
	_, err = inflate(packed.Bytes(), 999)
	require.EqualError(t, err, "more than 999 bytes")
	_, err = inflate([]byte("plain"), 1000)
	require.ErrorIs(t, err, zlib.ErrHeader)
}

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
