package checkpoint

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/testkit/memfs"
)

func TestCleanStopManifest(t *testing.T) {
	disk := memfs.New()
	_, ok, err := LoadCleanStop(disk, "m")
	require.NoError(t, err)
	require.False(t, ok)
	one := CleanStop{Generation: 1, LogEnd: 100, LastBytes: 50, LastCRC: 7, IndexEnd: -1}
	require.NoError(t, SaveCleanStop(disk, "m", one))
	two := one
	two.Generation++
	off := errors.New("power is off")
	for k := 0; ; k++ {
		d, n := disk.Clone(), 0
		d.Inject(func(op memfs.Op) error {
			if op.Kind.Changes() {
				n++
			}
			if n > k {
				return off
			}
			return nil
		})
		err := SaveCleanStop(d, "m", two)
		for seed := range uint64(5) {
			got, ok, loadErr := LoadCleanStop(d.Crash(seed), "m")
			require.NoError(t, loadErr)
			require.True(t, ok)
			if err == nil {
				require.Equal(t, two, got)
			} else {
				require.Contains(t, []CleanStop{one, two}, got)
			}
		}
		if err == nil {
			break
		}
		require.ErrorIs(t, err, off)
	}
}

func FuzzCleanStop(f *testing.F) {
	f.Add([]byte(`{"generation":1,"logMin":0,"logEnd":100,"lastBytes":50,"lastCrc":7,"indexEnd":-1}`))
	f.Add([]byte(`{"logEnd":-1}`))
	f.Add([]byte(`{`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if c, ok := decodeCleanStop(b); ok {
			require.True(t, c.LogMin >= 0 && c.LogMin <= c.LogEnd && c.LastBytes >= 0 && c.LastBytes <= c.LogEnd)
		}
	})
}
