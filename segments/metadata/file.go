package metadata

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"reflect"
	"time"

	"github.com/actormq/actormq/messages/fastjson"
	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/vfs"
)

const (
	freshSuffix  = ".tmp"
	backupSuffix = ".bak"
	// maxBytes bounds what is read into memory; the largest real file (offsets of a million queues) is far below.
	maxBytes = 512 << 20
)

// ErrDamaged: the file holds no JSON of the wanted shape.
var ErrDamaged = errors.New("damaged metadata file")

// Backup is the path of the content before of a file. Load takes it when the file is missing, so it goes where the file goes.
func Backup(name string) string { return name + backupSuffix }

// Save writes v as JSON in place of the file and keeps the content before as .bak, unless that is damaged (then the older
// .bak stays). When it returns nil the new content survives a power cut; when it fails, or anything ends it half-way, the
// old or the new content loads. A missing folder is made.
func Save(disk vfs.Disk, name string, v any) error {
	data, err := json.MarshalIndent(v, "", "\t")
	if err == nil {
		err = save(disk, name, append(data, '\n'), v)
	}
	if err != nil {
		return fmt.Errorf("save %s: %w", name, err)
	}
	return nil
}

func save(disk vfs.Disk, name string, data []byte, v any) error {
	if err := writeDurably(disk, name+freshSuffix, name, data); err != nil {
		return err
	}
	if err := backUp(disk, name, v); err != nil {
		return err
	}
	if err := disk.Rename(name+freshSuffix, name); err != nil {
		return err
	}
	return disk.SyncDir(path.Dir(name))
}

// backUp copies the file to .bak when it is sound.
func backUp(disk vfs.Disk, name string, v any) error {
	old, err := readAll(disk, name)
	if err != nil || len(old) == 0 {
		return err
	}
	if _, err := decode(old, v); err != nil {
		return nil
	}
	backup := Backup(name)
	if err := writeDurably(disk, backup+freshSuffix, name, old); err != nil {
		return err
	}
	return disk.Rename(backup+freshSuffix, backup)
}

// writeDurably makes a new file, whatever was under the name; only the name itself is not durable yet. It may be read by those
// who may read the file like, if there is one: that may hold secrets.
func writeDurably(disk vfs.Disk, name, like string, data []byte) error {
	f, err := createAnew(disk, name)
	if err != nil {
		return err
	}
	err = vfs.CopyMode(disk, like, name)
	if err == nil {
		_, err = f.WriteAt(data, 0)
	}
	if err == nil {
		err = f.DataSync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, vfs.RemoveIfThere(disk, name))
	}
	return nil
}

func createAnew(disk vfs.Disk, name string) (vfs.File, error) {
	f, err := disk.Create(name)
	switch {
	case errors.Is(err, fs.ErrExist):
		if err := vfs.RemoveIfThere(disk, name); err != nil {
			return nil, err
		}
		return disk.Create(name)
	case errors.Is(err, fs.ErrNotExist):
		if err := disk.MkdirAll(path.Dir(name)); err != nil {
			return nil, err
		}
		return disk.Create(name)
	}
	return f, err
}

// Load reads the file into what v points to: the main file, or .bak when that is missing, empty or damaged. Not found: both
// are missing or empty, and v is unchanged. It fails with ErrDamaged when a file is damaged and the other does not help;
// v is unchanged then too. LoadReport tells what Load keeps quiet about.
func Load(disk vfs.Disk, name string, v any) (found bool, err error) {
	r, err := LoadReport(disk, name, v)
	return r.From != "", err
}

// Report tells where a load found its content.
type Report struct {
	From    string // path of the file that was loaded; empty: there was none
	MainErr error  // what was wrong with the main file, when it could not be used; nil also when it was missing
}

// LoadReport is Load with an account of it, so that a main file that is damaged can be reported though .bak was good.
func LoadReport(disk vfs.Disk, name string, v any) (Report, error) {
	found, mainErr := loadOne(disk, name, v)
	if found {
		return Report{From: name}, nil
	}
	if mainErr != nil && !errors.Is(mainErr, ErrDamaged) {
		return Report{}, fmt.Errorf("load metadata: %w", mainErr)
	}
	found, err := loadOne(disk, Backup(name), v)
	if found {
		return Report{From: Backup(name), MainErr: mainErr}, nil
	}
	if err = errors.Join(mainErr, err); err != nil {
		err = fmt.Errorf("load metadata: %w", err)
	}
	return Report{MainErr: mainErr}, err
}

func loadOne(disk vfs.Disk, name string, v any) (found bool, err error) {
	data, err := readAll(disk, name)
	if err != nil || len(data) == 0 {
		return false, err
	}
	fresh, err := decode(data, v)
	if err != nil {
		return false, &segments.CorruptionError{File: name, Err: err}
	}
	reflect.ValueOf(v).Elem().Set(fresh)
	return true, nil
}

// decode reads the text into a fresh value of the type that v is, or points to.
func decode(data []byte, v any) (reflect.Value, error) {
	t := reflect.TypeOf(v)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	fresh := reflect.New(t)
	if !json.Valid(data) {
		strict, err := fastjson.Relax(data)
		if err != nil {
			return reflect.Value{}, fmt.Errorf("%w: %w", ErrDamaged, err)
		}
		data = strict
	}
	if err := json.Unmarshal(data, fresh.Interface()); err != nil {
		return reflect.Value{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return fresh.Elem(), nil
}

// Parse reads a table that another broker has sent, in RocketMQ's dialect, into what v points to.
func Parse(body []byte, v any) error {
	strict, err := fastjson.Relax(body)
	if err != nil {
		return err
	}
	return json.Unmarshal(strict, v)
}

// readAll returns the content of a file; a missing one is empty.
func readAll(disk vfs.Disk, name string) ([]byte, error) {
	f, err := disk.Open(name, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := content(f)
	return data, errors.Join(err, f.Close())
}

func content(f vfs.File) ([]byte, error) {
	size, err := f.Size()
	if err != nil || size == 0 {
		return nil, err
	}
	if size > maxBytes {
		err := fmt.Errorf("%w: %d bytes, limit %d", ErrDamaged, size, int64(maxBytes))
		return nil, &segments.CorruptionError{File: f.Name(), Err: err}
	}
	data := make([]byte, size)
	if n, err := f.ReadAt(data, 0); n < len(data) {
		return nil, err
	}
	return data, nil
}

// PutAside renames a file that can't be read, and its backup, so that no Save overwrites them; it returns the new names. On
// an error the other one may have been renamed.
func PutAside(disk vfs.Disk, name string, now time.Time) ([]string, error) {
	stamp := now.UTC().Format("20060102150405.000")
	var aside []string
	for _, from := range []string{name, Backup(name)} {
		to := from + ".unreadable-" + stamp
		switch err := disk.Rename(from, to); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return aside, err
		default:
			aside = append(aside, to)
		}
	}
	if len(aside) == 0 {
		return nil, nil
	}
	return aside, disk.SyncDir(path.Dir(name))
}
