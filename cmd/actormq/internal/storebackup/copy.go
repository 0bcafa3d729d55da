package storebackup

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/actormq/actormq/segments/vfs"
)

// blockBytes is read and written at a time.
const blockBytes = 1 << 20

var zeros [blockBytes]byte

// copyFile copies the first n bytes of a file, all when n is negative, and makes it as long as the original, with its permissions: what is
// zero stays a hole. It returns the SHA-256 of the copy's whole content, which is durable before it gets its name; the name itself is once the
// folder is synced.
func copyFile(ctx context.Context, disk vfs.Disk, from, to string, n int64) (sum string, err error) {
	in, err := disk.Open(from, false)
	if err != nil {
		return "", err
	}
	defer in.Close()
	part := to + ".part"
	if err := vfs.RemoveIfThere(disk, part); err != nil {
		return "", err
	}
	out, err := disk.Create(part)
	if err != nil {
		return "", err
	}
	sums := sha256.New()
	err = vfs.CopyMode(disk, from, part) // before it has a content: the accounts of plain_acl.yml are not for everybody
	if err == nil {
		err = fill(ctx, in, out, sums, n)
	}
	if err == nil {
		err = out.DataSync()
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return "", fmt.Errorf("copy %s: %w", from, errors.Join(err, vfs.RemoveIfThere(disk, part)))
	}
	return hex.EncodeToString(sums.Sum(nil)), disk.Rename(part, to)
}

func fill(ctx context.Context, in, out vfs.File, sums hash.Hash, n int64) error {
	size, err := in.Size()
	if err != nil {
		return err
	}
	if n < 0 || n > size {
		n = size
	}
	if err := out.Truncate(size); err != nil {
		return err
	}
	block := make([]byte, min(blockBytes, size))
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
		_, _ = sums.Write(b) // never an error
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
func sumFile(ctx context.Context, disk vfs.Disk, name string) (sum string, err error) {
	f, err := disk.Open(name, false)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sums, block := sha256.New(), make([]byte, blockBytes)
	for at := int64(0); ctx.Err() == nil; {
		n, err := f.ReadAt(block, at)
		_, _ = sums.Write(block[:n]) // never an error
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(sums.Sum(nil)), nil
		}
		if err != nil {
			return "", err
		}
		at += int64(n)
	}
	return "", context.Cause(ctx)
}
