package console

import (
	"bytes"
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

// TestABodyOfBracketsTakesNoMemory: indented, 20 KB of them are 200 MB, for each browser that looks at the message.
func TestABodyOfBracketsTakesNoMemory(t *testing.T) {
	const deep = 9999 // json reads no more
	text := strings.Repeat("[", deep) + strings.Repeat("]", deep)
	require.True(t, json.Valid([]byte(text)))
	m := &messages.StoredMessage{}
	m.Body = []byte(text)
	c := &Console{}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	forms := c.decode(m).Forms
	runtime.ReadMemStats(&after)
	require.NotContains(t, forms, "json")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}

// TestIndentedIsNoLessThanWhatIsWritten: the bound holds.
func TestIndentedIsNoLessThanWhatIsWritten(t *testing.T) {
	for _, text := range []string{
		`{}`, `[]`, `[1,2]`, `{"a":[{"b":"x"},{}],"c":"[[[{{{,,,"}`, `["\\",[["\"[",[1]]]]`, `[ [ 1 , 2 ] , { "k" : [ ] } ]`, strings.Repeat("[", 500) + strings.Repeat("]", 500),
	} {
		var out bytes.Buffer
		require.NoError(t, json.Indent(&out, []byte(text), "", jsonIndent), text)
		require.GreaterOrEqual(t, indented([]byte(text)), out.Len(), text)
	}
}
