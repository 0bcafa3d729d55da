package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/storebackup"
	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

func newStoreBackupCommand() *cobra.Command {
	return newCopyCommand(&cobra.Command{
		Use:   "backup DIR DEST",
		Short: "Copy a store, which a node may be using, to another directory",
		Long: `Copies a store directory, of a running node too, to DEST and recovers the copy, so that it is a whole store: store verify passes, and a node
can be started on it. What the node has acknowledged before the command begins is in it. A second backup to the same DEST copies
what has come since; one that was interrupted goes on. The log must be in DIR/commitlog. The index is built again. Progress goes to
standard error.`,
		Example: "  actormq store backup /var/lib/actormq /backup/actormq",
	}, nil, storebackup.Backup)
}

func newStoreRestoreCommand() *cobra.Command {
	return newCopyCommand(&cobra.Command{
		Use:   "restore BACKUP DIR",
		Short: "Copy a backup to a directory that is empty or not there",
		Long: `Copies a backup to DIR, compares the commit-log files with the checksums that were taken, and recovers the copy. Of a backup whose
last run was interrupted it takes what was whole before, and says so.`,
		Example: "  actormq store restore /backup/actormq /var/lib/actormq",
	}, storebackup.IsWhole, storebackup.Restore)
}

type copyFunc func(ctx context.Context, disk vfs.Disk, p store.Params, to string, tell storebackup.Progress) (storebackup.Done, error)

// newCopyCommand makes a command that copies the store of its first argument, which fit, if not nil, does not refuse, to its second.
func newCopyCommand(c *cobra.Command, fit func(disk vfs.Disk, dir string) error, do copyFunc) *cobra.Command {
	var sizes sizeFlags
	var asJSON bool
	c.Args = cobra.ExactArgs(2)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		disk := vfs.New()
		if fit != nil {
			from, err := filepath.Abs(args[0])
			if err = errors.Join(err, fit(disk, from)); err != nil {
				return err
			}
		}
		p, err := findStore(disk, args[0], sizes)
		if err != nil {
			return err
		}
		to, err := filepath.Abs(args[1])
		if err != nil {
			return err
		}
		p.MessageIndex, p.CheckCRC = true, true
		ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
		defer cancel()
		done, err := do(ctx, disk, p, to, tellProgress(cmd.ErrOrStderr(), "copied"))
		if err != nil {
			return err
		}
		if asJSON {
			return tools.WriteJSON(cmd.OutOrStdout(), done)
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: %d commit-log files, %d copied now, log end %d\n", to, done.Segments, done.Copied, done.LogEnd)
		if done.Unfinished {
			_, moreErr := fmt.Fprintln(cmd.OutOrStdout(), "the last run of this backup was not finished: this is the last that it had all of")
			err = errors.Join(err, moreErr)
		}
		return err
	}
	sizes.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}
