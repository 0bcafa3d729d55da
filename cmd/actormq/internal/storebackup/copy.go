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
)

// blockBytes is read and written at a time.
const blockBytes = 1 << 20

var zeros [blockBytes]byte

// copyFile copies the first n bytes of a file, all when n is negative, and makes it as long as the original: what is zero stays a
// hole. It returns the SHA-256 of the copy's whole content. The name appears once all is durable.
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
	out, err := os.Create(to + ".part")
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	err = fill(ctx, in, out, hash, n, size)
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

// copyTree copies what is below a folder, and removes from the copy what is not there any more. What vanishes meanwhile was deleted.
func copyTree(ctx context.Context, from, to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	err := filepath.WalkDir(from, func(name string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		below, err := filepath.Rel(from, name)
		if err != nil {
			return err
		}
		_, err = copyFile(ctx, name, filepath.Join(to, below), -1)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}
