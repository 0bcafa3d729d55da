package storebackup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/actormq/actormq/segments/vfs"
)

// blockBytes is read and written at a time.
const blockBytes = 1 << 20

var zeros [blockBytes]byte

// copyFile copies the first n bytes of a file, all when n is negative, and makes it as long as the original, with its permissions: what is
// zero stays a hole. It returns the SHA-256 of the copy's whole content. The name appears once all is durable.
func copyFile(ctx context.Context, from, to string, n int64) (sum string, err error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return "", err
	}
	size := info.Size()
	if n < 0 || n > size {
		n = size
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return "", err
	}
	out, err := os.OpenFile(to+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600) // the accounts of plain_acl.yml are not for everybody
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	err = errors.Join(fill(ctx, in, out, hash, n, size), out.Chmod(info.Mode().Perm()))
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return "", fmt.Errorf("copy %s: %w", from, errors.Join(err, os.Remove(to+".part")))
	}
	return hex.EncodeToString(hash.Sum(nil)), os.Rename(to+".part", to)
}

func fill(ctx context.Context, in io.ReaderAt, out *os.File, hash io.Writer, n, size int64) error {
	if err := out.Truncate(size); err != nil {
		return err
	}
	block := make([]byte, blockBytes)
	for at := int64(0); at < size; at += blockBytes {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		b := block[:min(blockBytes, size-at)]
		clear(b)
		if at < n {
			if _, err := in.ReadAt(b[:min(int64(len(b)), n-at)], at); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
		_, _ = hash.Write(b) // never an error
		if bytes.Equal(b, zeros[:len(b)]) {
			continue
		}
		if _, err := out.WriteAt(b, at); err != nil {
			return err
		}
	}
	return nil
}

// sumFile is the SHA-256 of a file.
func sumFile(ctx context.Context, name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	hash, block := sha256.New(), make([]byte, blockBytes)
	for ctx.Err() == nil {
		n, err := f.Read(block)
		_, _ = hash.Write(block[:n]) // never an error
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(hash.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", context.Cause(ctx)
}

// treeDepth bounds the folders below one that is copied: a link may lead back.
const treeDepth = 8

// copyTree copies what is below a folder, and removes from the copy what is not there any more. What vanishes meanwhile was deleted. Links are
// followed, as a store follows them: it may have folders on other disks.
func copyTree(ctx context.Context, from, to string) error {
	err := os.RemoveAll(to)
	if err == nil {
		err = copyBelow(ctx, from, to, treeDepth)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}

// copyDurably is copyTree for folders that nobody syncs later.
func copyDurably(ctx context.Context, from, to string) error {
	if err := copyTree(ctx, from, to); err != nil {
		return err
	}
	err := filepath.WalkDir(to, func(name string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = syncDir(name)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) { // the store has none
		return nil
	}
	return err
}

func copyBelow(ctx context.Context, from, to string, depth int) error {
	if depth == 0 {
		return fmt.Errorf("%s: more than %d folders in each other", from, treeDepth)
	}
	entries, err := vfs.ListIfThere(vfs.New(), from)
	if err != nil {
		return err
	}
	for _, e := range entries {
		below, copied := filepath.Join(from, e.Name), filepath.Join(to, e.Name)
		if e.Dir {
			err = copyBelow(ctx, below, copied, depth-1)
		} else {
			err = copyRegular(ctx, below, copied)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyRegular copies a file, unless it has vanished, or is none that has a content.
func copyRegular(ctx context.Context, from, to string) error {
	st, err := os.Stat(from)
	if err == nil && st.Mode().IsRegular() {
		_, err = copyFile(ctx, from, to, -1)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
