package golden

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
)

//go:embed testdata
var data embed.FS

// Store is one golden store.
type Store struct {
	Name   string
	Params []byte // params.json

	archive  []byte
	expected []byte // nil: RocketMQ's answer is not right
	manifest []byte // nil: RocketMQ's answer is all there is to compare
	verify   []byte
}

// Names are all golden stores in alphabetical order.
func Names() []string {
	entries, err := data.ReadDir("testdata")
	if err != nil {
		panic("BUG: golden: " + err.Error())
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// Load returns a golden store.
func Load(name string) Store {
	return Store{
		Name: name, Params: read(name, "params.json"), archive: read(name, "store.tar.gz"),
		expected: unzip(read(name, "expected.json.gz")), manifest: unzip(read(name, "manifest.json.gz")), verify: read(name, "verify.json"),
	}
}

// Expected is RocketMQ's own dump of the store, nil when it is not right.
func (s Store) Expected() []byte { return s.expected }

// Manifest is the manifest of the store, nil when it has none.
func (s Store) Manifest() []byte { return s.manifest }

// read returns a file, nil when there is none.
func read(name, file string) []byte {
	b, err := data.ReadFile(path.Join("testdata", name, file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		panic("BUG: golden: " + err.Error())
	}
	return b
}

func unzip(b []byte) []byte {
	if b == nil {
		return nil
	}
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err == nil {
		b, err = io.ReadAll(r)
	}
	if err != nil {
		panic("BUG: golden: " + err.Error())
	}
	return b
}

// Unpack writes the directory below dir and returns its path.
func (s Store) Unpack(dir string) (string, error) {
	r, err := gzip.NewReader(bytes.NewReader(s.archive))
	if err != nil {
		return "", fmt.Errorf("golden store %s: %w", s.Name, err)
	}
	for t := tar.NewReader(r); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return filepath.Join(dir, "store"), nil
		}
		if err == nil {
			err = unpack(dir, h, t)
		}
		if err != nil {
			return "", fmt.Errorf("golden store %s: %w", s.Name, err)
		}
	}
}

func unpack(dir string, h *tar.Header, content io.Reader) error {
	if !filepath.IsLocal(h.Name) {
		return fmt.Errorf("%s leads out of the archive", h.Name)
	}
	name := filepath.Join(dir, h.Name)
	if h.Typeflag == tar.TypeDir {
		return os.MkdirAll(name, 0o755)
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, content)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Chtimes(name, h.ModTime, h.ModTime)
}
