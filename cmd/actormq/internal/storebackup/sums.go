package storebackup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// listName is the file with the checksums.
const listName = "backup.json"

// list is what backup.json holds.
type list struct {
	Source   string            `json:"source"`
	Segments map[string]string `json:"segments"` // commit-log files that will not change: their SHA-256
}

func readList(dir string) (list, error) {
	l := list{Segments: map[string]string{}}
	text, err := os.ReadFile(filepath.Join(dir, listName))
	if errors.Is(err, fs.ErrNotExist) {
		return l, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &l)
	}
	if err != nil {
		return l, fmt.Errorf("read the checksums of the backup: %w", err)
	}
	return l, nil
}

// write replaces the file as a whole.
func (l list) write(dir string) error {
	text, err := json.MarshalIndent(l, "", " ")
	if err != nil {
		return err
	}
	name := filepath.Join(dir, listName)
	f, err := os.Create(name + ".tmp")
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	if err := os.Rename(name+".tmp", name); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
