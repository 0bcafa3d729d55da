package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/verify"
	"github.com/actormq/actormq/segments/vfs"
)

// Exit statuses of store verify beside 0, whole.
const (
	statusDamage   = 1
	statusNoAnswer = 2
)

// errDamaged: the store that was verified is damaged.
var errDamaged = errors.New("the store is damaged")

func newStoreVerifyCommand() *cobra.Command {
	var sizes sizeFlags
	var asJSON, noIndex bool
	c := &cobra.Command{
		Use:   "verify DIR",
		Short: "Check every record, queue unit, index entry and the checkpoint of a store",
		Long: `Check a store directory from end to end: every record, every unit of every queue, every index entry, the
checkpoint, the sizes and names of the files. The directory is not changed and not locked; one that a running node changes
meanwhile may look damaged where it does. Each finding names file and offset. What a killed process had not written yet of checkpoint, queues and
index is told too, and is no damage when the next start completes it by itself: that is tried out in memory. Marks that an earlier
process has left of what it could not make durable are told, with what the next start does about them. Progress goes to standard error.

Exit status: 0 nothing is damaged, 1 something is, 2 it could not be looked at.`,
		Example: "  actormq store verify /var/lib/actormq --json",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return runVerify(c, args[0], sizes, asJSON, noIndex) },
	}
	sizes.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "write the report as JSON")
	c.Flags().BoolVar(&noIndex, "no-index", false, "leave the index out")
	return c
}

func runVerify(c *cobra.Command, dir string, sizes sizeFlags, asJSON, noIndex bool) error {
	disk := vfs.New()
	p, err := findStore(disk, dir, sizes)
	if err == nil {
		p.MessageIndex = !noIndex
		var r verify.Report
		if r, err = verify.Run(disk, p, tellProgress(c.ErrOrStderr(), "verified")); err == nil {
			if err = writeReport(c.OutOrStdout(), &r, asJSON); err == nil && !r.Whole {
				return statusError{status: statusDamage, error: errDamaged}
			}
		}
	}
	if err != nil {
		return statusError{status: statusNoAnswer, error: err}
	}
	return nil
}

// findStore returns the parameters of the store in a directory.
func findStore(disk vfs.Disk, dir string, sizes sizeFlags) (store.Params, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return store.Params{}, err
	}
	dir = filepath.ToSlash(dir)
	if err := looksLikeStore(disk, dir); err != nil {
		return store.Params{}, err
	}
	found, err := sizes.find(disk, dir)
	return found.StoreParams(dir), err
}

// errNoStore: a folder has nothing that a store has.
var errNoStore = errors.New("this is no store: it has neither commitlog nor consumequeue, index or checkpoint")

// looksLikeStore refuses a folder that was named by mistake: as a store without a message it would be whole, and a repair would make one of it.
func looksLikeStore(disk vfs.Disk, dir string) error {
	if e, err := disk.Stat(dir); err != nil || !e.Dir { // a file is refused where it is listed
		return err
	}
	p := store.Params{Dir: dir}.WithDefaults()
	for _, name := range []string{p.CommitLogDir, p.ConsumeQueueDir(), p.IndexDir(), p.CheckpointPath()} {
		switch _, err := disk.Stat(name); {
		case err == nil:
			return nil
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	return fmt.Errorf("%s: %w", dir, errNoStore)
}

// tellProgress writes a line a second.
func tellProgress(w io.Writer, what string) func(done, total int64) {
	next := time.Now().Add(time.Second)
	return func(done, total int64) {
		if now := time.Now(); now.After(next) && total > 0 {
			next = now.Add(time.Second)
			fmt.Fprintf(w, "%s %d of %d MiB (%d %%)\n", what, done>>20, total>>20, 100*done/total)
		}
	}
}

func writeReport(w io.Writer, r *verify.Report, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(w)
		e.SetIndent("", " ")
		return e.Encode(r)
	}
	for _, f := range r.Findings {
		fmt.Fprintln(w, f)
	}
	if r.MoreFindings > 0 {
		fmt.Fprintf(w, "and %d more\n", r.MoreFindings)
	}
	for _, f := range r.NextStart {
		fmt.Fprintf(w, "the next start completes: %v\n", f)
	}
	if r.MoreNextStart > 0 {
		fmt.Fprintf(w, "the next start completes %d more\n", r.MoreNextStart)
	}
	for _, m := range r.Marks {
		fmt.Fprintf(w, "%s: from %d: %s\n", m.File, m.From, m.Next)
	}
	how := "closed properly"
	if !r.Clean {
		how = "not closed properly"
	}
	state := "whole"
	next := int64(len(r.NextStart)) + r.MoreNextStart
	switch {
	case !r.Whole:
		state = fmt.Sprintf("%d findings", int64(len(r.Findings))+r.MoreFindings)
	case next > 0:
		state = fmt.Sprintf("not damaged, the next start completes %d things", next)
	}
	_, err := fmt.Fprintf(w, "%s: %s; %s; log %d..%d, %d records (%d stand for lost ones), %d queues with %d units, %d index files with %d entries\n",
		r.Dir, state, how, r.LogMin, r.LogEnd, r.Records, r.LostRecords, r.Queues, r.Units, r.IndexFiles, r.IndexEntries)
	return err
}
