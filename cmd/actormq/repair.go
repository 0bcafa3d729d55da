package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/verify"
	"github.com/actormq/actormq/segments/vfs"
)

func newStoreRepairCommand() *cobra.Command {
	var sizes sizeFlags
	var apply, asJSON bool
	c := &cobra.Command{
		Use:   "repair DIR",
		Short: "Mend a store directory: print what would be done, or do it with --apply",
		Long: `Mend a store directory as the start of a node does, but with a look at all of the log: what stands behind its end is cut
off, damage inside it is closed with records that stand for the lost ones, queues and index are built from it again where
they do not agree with it. The commit log's bytes that are replaced are kept in quarantine/ first; queues and index are
derived from the log and are not kept.

Without --apply nothing is changed and nothing is locked: the plan is printed. With it the plan is printed too; a directory
that a node or another program has open is refused before that.`,
		Example: "  actormq store repair /var/lib/actormq\n  actormq store repair /var/lib/actormq --apply --json",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return runRepair(c, args[0], sizes, apply, asJSON) },
	}
	sizes.add(c)
	c.Flags().BoolVar(&apply, "apply", false, "do it")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

// repairLine is what is said of a repair.
type repairLine struct {
	Dir       string   `json:"dir"`
	Findings  int64    `json:"findings"`
	LogEnd    int64    `json:"logEnd"`
	Steps     []string `json:"steps"`
	MoreSteps int64    `json:"moreSteps,omitempty"`
	Applied   bool     `json:"applied"`
	Kept      string   `json:"kept,omitempty"` // where what was replaced in the log is kept
}

func runRepair(c *cobra.Command, dir string, sizes sizeFlags, apply, asJSON bool) error {
	disk := vfs.New()
	p, err := findStore(disk, dir, sizes)
	if err != nil {
		return err
	}
	release := func() error { return nil }
	if apply {
		if release, err = keepOthersOut(disk, p); err != nil {
			return err
		}
	}
	line, o, err := planRepair(c, disk, p)
	if err = errors.Join(err, release()); err != nil { // to apply it takes the lock itself
		return err
	}
	if !asJSON {
		line.print(c.OutOrStdout())
	}
	if apply {
		if line.Kept, err = applyRepair(disk, p, o); err != nil {
			return inUse(err)
		}
		line.Applied = true
	}
	switch {
	case asJSON:
		return tools.WriteJSON(c.OutOrStdout(), line)
	case apply:
		fmt.Fprintln(c.OutOrStdout(), "done")
		if line.Kept != "" {
			fmt.Fprintln(c.OutOrStdout(), "what was replaced in the log is kept in", line.Kept)
		}
	}
	return nil
}

// keepOthersOut holds the store's lock until it is released.
func keepOthersOut(disk vfs.Disk, p store.Params) (release func() error, err error) {
	lock, err := disk.Lock(p.LockPath())
	if err != nil {
		return nil, inUse(err)
	}
	return lock.Close, nil
}

// inUse says what a lock means that somebody else has.
func inUse(err error) error {
	if errors.Is(err, vfs.ErrLocked) {
		return fmt.Errorf("a node or another program has this store open: %w", err)
	}
	return err
}

// planRepair looks for damage, and at what mending it would do; the options are those of the store that does it, but read-only.
func planRepair(c *cobra.Command, disk vfs.Disk, p store.Params) (repairLine, store.Options, error) {
	found, err := verify.Run(disk, p, tellProgress(c.ErrOrStderr(), "verified"))
	if err != nil {
		return repairLine{}, store.Options{}, err
	}
	o := store.Options{FullScan: true, LogIsGone: true, RebuildIndex: found.In(verify.PartIndex), ReadOnly: true, IndexUnbuilt: true}
	last := ""
	o.Progress = func(p store.Progress) {
		if p.Step != last {
			last = p.Step
			fmt.Fprintf(c.ErrOrStderr(), "%s: %d MiB\n", p.Step, p.Total>>20)
		}
	}
	s, err := store.Open(disk, p, o)
	if err != nil {
		return repairLine{}, o, err
	}
	plan := s.Report
	return planLine(p.Dir, &plan, &found), o, s.Close()
}

// applyRepair does what the plan says; kept is where the bytes of the log that were replaced are.
func applyRepair(disk vfs.Disk, p store.Params, o store.Options) (kept string, err error) {
	o.ReadOnly, o.IndexUnbuilt, o.Now = false, false, time.Now
	s, err := store.Open(disk, p, o)
	if err != nil {
		return "", err
	}
	return s.Report.Quarantine, s.CloseClean()
}

func planLine(dir string, r *store.Report, found *verify.Report) repairLine {
	line := repairLine{
		Dir: dir, Findings: found.Count(), LogEnd: int64(r.Plan.End), Steps: []string{}, MoreSteps: int64(r.MoreEvents),
	}
	for _, e := range r.Events {
		line.Steps = append(line.Steps, fmt.Sprint(e))
	}
	index := func(f verify.Finding) bool { return f.Part == verify.PartIndex }
	if r.IndexFrom < r.Plan.End && (slices.ContainsFunc(found.Findings, index) || slices.ContainsFunc(found.NextStart, index)) {
		line.Steps = append(line.Steps, fmt.Sprintf("index built: %d..%d", r.IndexFrom, r.Plan.End))
	}
	return line
}

// print writes what a repair does, one step a line.
func (l *repairLine) print(w io.Writer) {
	fmt.Fprintf(w, "%s: %d findings; the log ends at %d; the plan:\n", l.Dir, l.Findings, l.LogEnd)
	for _, step := range l.Steps {
		fmt.Fprintln(w, "  ", step)
	}
	if l.MoreSteps > 0 {
		fmt.Fprintf(w, "   and %d more steps\n", l.MoreSteps)
	}
	fmt.Fprintf(w, "   write the checkpoint, close properly\n")
}
