package messages_test

import (
	"encoding/hex"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

func TestJavaHash(t *testing.T) {
	for text, want := range map[string]int32{ // the first five: spec/store.md §17.10
		"TagA":               2598919,
		"TagB":               2598920,
		"中文":                 646394,
		"TopicTest#k1":       2746024,
		"polygenelubricants": -2147483648,
		"":                   0,
		"d":                  100,
		"\uFFFD":             0xFFFD,
		"A\U0001F600A":       56896349,
	} {
		require.Equal(t, want, messages.JavaHash(text), "%q", text)
		require.Equal(t, want, messages.JavaHashBytes([]byte(text)), "%q", text)
	}
	require.Zero(t, messages.JavaHashBytes(nil))
}

// What Java 17 answers for new String(bytes, UTF_8).hashCode(). How often it writes U+FFFD differs from Go's rule.
func TestJavaHashOfMalformedUTF8(t *testing.T) {
	for bytes, want := range map[string]int32{
		"80": 65533, "c2": 65533, "ff": 65533, "c080": 2097056, "c241": 2031588, "e4": 65533, "e4b8": 65533,
		"e4b841": 2031588, "e441": 2031588, "e4b8c3a9": 2031756, "e080af": 65074269, "eda080": 65533, "eda0": 65533,
		"eda080edb080": 2097056, "f0": 65533, "f080": 2097056, "f09f": 65533, "f09f98": 65533, "f09f9841": 2031588,
		"f09f41": 2031588, "f4908080": 2017367872, "f5808080": 2017367872, "f880808080": -1886039875, "efbfbd": 65533,
	} {
		raw, err := hex.DecodeString(bytes)
		require.NoError(t, err)
		require.Equal(t, want, messages.JavaHashBytes(raw), bytes)
	}
}

// Text is hashed eight characters at a time: whatever its length, and wherever something else than ASCII stands in it.
func TestJavaHashOfEveryLength(t *testing.T) {
	slow := func(s string) (h int32) {
		for _, u := range utf16.Encode([]rune(s)) {
			h = 31*h + int32(u)
		}
		return h
	}
	long := strings.Repeat("TopicTest#7F00000100A518B4\x7f\x00", 3)
	for n := range len(long) {
		require.Equal(t, slow(long[:n]), messages.JavaHash(long[:n]), "%d", n)
		with := long[:n] + "é" + long[n:]
		require.Equal(t, slow(with), messages.JavaHash(with), "%d", n)
	}
}

func TestJavaHashDoesNotAllocate(t *testing.T) {
	ascii, unicode, broken := "TopicTest#"+strings.Repeat("k", 100), strings.Repeat("中\U0001F600", 50), []byte("a\xe4\xb8\xed\xa0\x80")
	require.Zero(t, testing.AllocsPerRun(100, func() {
		hashSink = messages.JavaHash(ascii) + messages.JavaHash(unicode) + messages.JavaHashBytes(broken)
	}))
}

var hashSink int32

func FuzzJavaHash(f *testing.F) {
	for _, seed := range []string{"", "TagA", "中文", "A\U0001F600A", "\xed\xa0\x80", "\xf0\x9f", "polygenelubricants"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := messages.JavaHash(text)
		if !utf8.ValidString(text) {
			return // only that it ends without a panic; TestJavaHashOfMalformedUTF8 has the values
		}
		want := int32(0)
		for _, unit := range utf16.Encode([]rune(text)) {
			want = 31*want + int32(unit)
		}
		require.Equal(t, want, got)
	})
}

func BenchmarkJavaHash(b *testing.B) {
	for name, text := range map[string]string{"ascii": "TopicTest#0A010203000018B4AAC206E2D6190000", "chinese": strings.Repeat("中文", 10)} {
		b.Run("text="+name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				hashSink = messages.JavaHash(text)
			}
		})
	}
}
