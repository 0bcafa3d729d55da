package metadata

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/actormq/actormq/segments/vfs"
)

// maxTextBytes bounds a text file of an operator.
const maxTextBytes = 1 << 20

// ReadText returns the content of a small text file that an operator writes; fs.ErrNotExist when it is missing, ErrDamaged when
// it is longer than 1 MiB.
func ReadText(disk vfs.Disk, name string) ([]byte, error) {
	entry, err := disk.Stat(name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	if entry.Dir || entry.Size > maxTextBytes {
		return nil, fmt.Errorf("read %s: %w: no file of at most %d bytes", name, ErrDamaged, maxTextBytes)
	}
	text, err := readAll(disk, name)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	return text, nil
}

// WriteText replaces a text file, whose permissions stay; the content before stays as .bak. When it returns nil the new content survives a power cut; when
// it fails, or anything ends it half-way, the file has the old or the new content.
func WriteText(disk vfs.Disk, name string, text []byte) error {
	err := writeDurably(disk, name+freshSuffix, name, text)
	if err == nil {
		err = keepOld(disk, name)
	}
	if err == nil {
		err = disk.Rename(name+freshSuffix, name)
	}
	if err == nil {
		err = disk.SyncDir(path.Dir(name))
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func keepOld(disk vfs.Disk, name string) error {
	old, err := ReadText(disk, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := writeDurably(disk, name+backupSuffix+freshSuffix, name, old); err != nil {
		return err
	}
	return disk.Rename(name+backupSuffix+freshSuffix, name+backupSuffix)
}
