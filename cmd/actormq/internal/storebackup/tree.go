package storebackup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/actormq/actormq/segments/vfs"
)

// treeDepth bounds the folders below one that is copied: a link may lead back.
const treeDepth = 8

// copyAnew copies a file, or what is below a folder, in place of what has the name in the copy. What vanishes meanwhile was deleted. Links are
// followed, as a store follows them: it may have folders on other disks. When it returns nil all is durable but the name itself.
func copyAnew(ctx context.Context, disk vfs.Disk, from, to string) error {
	err := removeTree(disk, to)
	if err == nil {
		err = copyThere(ctx, disk, from, to)
	}
	if err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}

// copyThere is copyAnew where there is nothing, or a file that is to stay when the original has vanished.
func copyThere(ctx context.Context, disk vfs.Disk, from, to string) error {
	e, err := disk.Stat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return copyEntry(ctx, disk, e, from, to, treeDepth)
}

func copyEntry(ctx context.Context, disk vfs.Disk, e vfs.Entry, from, to string, depth int) error {
	switch {
	case e.Dir:
		return copyBelow(ctx, disk, from, to, depth)
	case e.Other:
		return nil
	}
	_, err := copyFile(ctx, disk, from, to, -1)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func copyBelow(ctx context.Context, disk vfs.Disk, from, to string, depth int) error {
	if depth == 0 {
		return fmt.Errorf("%s: more than %d folders in each other", from, treeDepth)
	}
	entries, err := vfs.ListIfThere(disk, from)
	if err != nil || len(entries) == 0 {
		return err
	}
	if err := disk.Mkdir(to); err != nil {
		return err
	}
	for _, e := range entries {
		if err := copyEntry(ctx, disk, e, path.Join(from, e.Name), path.Join(to, e.Name), depth-1); err != nil {
			return err
		}
	}
	return disk.SyncDir(to)
}

// removeTree deletes a file, or a folder with all that is below it; a link, not what it leads to.
func removeTree(disk vfs.Disk, name string) error {
	err := vfs.RemoveIfThere(disk, name)
	if err == nil {
		return nil
	}
	entries, listErr := disk.List(name)
	if listErr != nil {
		return err
	}
	for _, e := range entries {
		if err := removeTree(disk, path.Join(name, e.Name)); err != nil {
			return err
		}
	}
	return vfs.RemoveIfThere(disk, name)
}
