package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"

	"github.com/actormq/actormq/segments/vfs"
)

// maxCleanStopBytes is far more than a clean-stop manifest has.
const maxCleanStopBytes = 4096

// CleanStop is what a store looked like when it was closed properly: an own file beside RocketMQ's, which RocketMQ neither
// reads nor writes. Who opens the store next compares it with what is there, and reads the log again when it does not fit:
// RocketMQ may have run in between.
type CleanStop struct {
	Generation int64 `json:"generation"` // one more at each clean stop
	LogMin     int64 `json:"logMin"`
	LogEnd     int64 `json:"logEnd"`
	StoreMs    int64 `json:"storeTimestamp"` // of the last record
	// LastBytes and LastCRC are length and CRC-32C of the last bytes of the log.
	LastBytes int64  `json:"lastBytes"`
	LastCRC   uint32 `json:"lastCrc"`
	// Queues and QueueSum are the number of the consume queues and a sum over their names and ends.
	Queues   int64  `json:"queues"`
	QueueSum uint64 `json:"queueSum"`
	// IndexFiles and IndexEnd are the number of index files and the last record in them, -1 without; both are -1 when the store ran
	// without an index, which then may lack anything.
	IndexFiles int64 `json:"indexFiles"`
	IndexEnd   int64 `json:"indexEnd"`
}

// LoadCleanStop reads a manifest; false when there is none that can be read as one. An error is one of the disk.
func LoadCleanStop(disk vfs.Disk, name string) (CleanStop, bool, error) {
	f, err := disk.Open(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return CleanStop{}, false, nil
	}
	if err != nil {
		return CleanStop{}, false, fmt.Errorf("load clean-stop manifest: %w", err)
	}
	b, err := io.ReadAll(io.NewSectionReader(f, 0, maxCleanStopBytes))
	if err = errors.Join(err, f.Close()); err != nil {
		return CleanStop{}, false, fmt.Errorf("load clean-stop manifest: %w", err)
	}
	c, ok := decodeCleanStop(b)
	return c, ok, nil
}

func decodeCleanStop(b []byte) (c CleanStop, ok bool) {
	if json.Unmarshal(b, &c) != nil || c.LogMin < 0 || c.LogEnd < c.LogMin || c.LastBytes < 0 || c.LastBytes > c.LogEnd-c.LogMin {
		return CleanStop{}, false
	}
	return c, true
}

// SaveCleanStop makes a manifest durable: when it returns nil it survives a power cut, and when it fails or is cut short the
// old one or the new one is there.
func SaveCleanStop(disk vfs.Disk, name string, c CleanStop) error {
	b, err := json.Marshal(c)
	if err == nil {
		err = replaceWith(disk, name, b)
	}
	if err == nil {
		err = disk.SyncDir(path.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("save clean-stop manifest: %w", err)
	}
	return nil
}
