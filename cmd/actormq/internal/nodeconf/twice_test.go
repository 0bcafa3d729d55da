package nodeconf

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAKeyThatIsSetTwiceIsTold: the last value counts, as in RocketMQ, and who changes the first one wonders.
func TestAKeyThatIsSetTwiceIsTold(t *testing.T) {
	file := filepath.Join(t.TempDir(), "broker.conf")
	text := "# brokerName=x\r\nbrokerName=a\r\n\nlistenPort = 1\nstorePathRootDir=b\\\nbrokerName=c\n  listenPort:2\nstorePathRootDir d\\\\\nlistenPort=3"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	c := Default()
	require.NoError(t, c.Load(file))
	require.Equal(t, []string{
		file + ":7 sets listenPort again: the value of line 4 does not count",
		file + ":8 sets storePathRootDir again: the value of line 5 does not count",
		file + ":9 sets listenPort again: the value of line 7 does not count",
	}, c.Odd()[:3])
	require.Equal(t, 3, c.ListenPort)
}
