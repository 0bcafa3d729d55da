package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/storedump"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/vfs"
)

// dumpFlags are the flags of `store dump`.
type dumpFlags struct {
	sizes            sizeFlags
	json, manifest   string
	noIndex, verbose bool
}

// sizeFlags say which sizes the files of a store have.
type sizeFlags struct {
	params string
	slots  int32
}

func (f *sizeFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.params, "params", "", "JSON file with the file sizes (commitLogSize, consumeQueueSize, hashSlots, indexNum, …)")
	c.Flags().Int32Var(&f.slots, "slots", 0, "hash slots of an index file, when they cannot be told from its length")
}

// find reads the sizes, or takes them from the lengths of the files. Further queues show themselves.
func (f *sizeFlags) find(disk vfs.Disk, dir string) (p storedump.Params, err error) {
	if f.params != "" {
		p, err = storedump.ReadParams(f.params)
	} else {
		p, err = storedump.Detect(disk, dir, f.slots)
	}
	if err == nil && !p.LMQ {
		p.LMQ, err = storedump.HasFurtherQueues(disk, dir)
	}
	return p, err
}

func newStoreDumpCommand() *cobra.Command {
	var f dumpFlags
	c := &cobra.Command{
		Use:   "dump DIR --json FILE",
		Short: "Write all that can be read from a store as JSON",
		Long: `Write all that can be read from a store directory as JSON: the log's range, every queue with its messages, the
answers of the index, every record. Load and recovery happen in memory: the directory is not changed and not locked, so
it may be that of a running node. Progress goes to standard error.

Without --params the file sizes are taken from the lengths of the files.`,
		Example: "  actormq store dump /var/lib/actormq --json out.json",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return runDump(c, args[0], f) },
	}
	c.Flags().StringVar(&f.json, "json", "", `file to write, "-" for standard output`)
	f.sizes.add(c)
	c.Flags().StringVar(&f.manifest, "manifest", "", "JSON file with the messages that were put: their keys are asked for too")
	c.Flags().BoolVar(&f.noIndex, "no-index", false, "leave out the answers of the index; needs little memory for any store")
	c.Flags().BoolVarP(&f.verbose, "verbose", "v", false, "tell on standard error what recovery finds and would do")
	return c
}

func runDump(c *cobra.Command, dir string, f dumpFlags) error {
	if f.json == "" {
		return withUsage(c, errors.New("where to? --json FILE, or --json - for standard output"))
	}
	disk := vfs.New()
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	o := storedump.Options{Dir: filepath.ToSlash(dir), Manifest: f.manifest, NoIndex: f.noIndex}
	recovered := tellProgress(c.ErrOrStderr(), "recovered")
	o.Progress, o.Recovering = tellProgress(c.ErrOrStderr(), "dumped"), func(p store.Progress) { recovered(p.Done, p.Total) }
	if f.verbose {
		o.Events = func(e store.Event) { fmt.Fprintln(c.ErrOrStderr(), e) }
	}
	if err := looksLikeStore(disk, o.Dir); err != nil {
		return err
	}
	if o.Params, err = f.sizes.find(disk, o.Dir); err != nil {
		return err
	}
	return writeOutput(c.OutOrStdout(), f.json, func(w io.Writer) error { return storedump.Dump(w, disk, o) })
}

// writeOutput writes a file as a whole: under its name there is never a part of a dump. What is no regular file is written to as it is. A dump that says that the store
// cannot be loaded is whole too.
func writeOutput(stdout io.Writer, name string, write func(io.Writer) error) error {
	if name == "-" {
		return write(stdout)
	}
	target, unresolved := filepath.EvalSymlinks(name)
	if st, err := os.Stat(name); err == nil && (unresolved != nil || !st.Mode().IsRegular()) { // /dev/null, a pipe: a rename would put a file in its place
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	if unresolved == nil {
		name = target // a link, /dev/stdout for one, stays what it is
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.tmp")
	if err != nil {
		return err
	}
	failed := write(f)
	err = errors.Join(f.Chmod(0o644), f.Close())
	if failed != nil && !errors.Is(failed, storedump.ErrNotLoaded) || err != nil {
		return errors.Join(failed, err, os.Remove(f.Name()))
	}
	return errors.Join(failed, os.Rename(f.Name(), name))
}
