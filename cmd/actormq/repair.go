package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/segments/store"
	"github.com/actormq/actormq/segments/verify"
	"github.com/actormq/actormq/segments/vfs"
)

func newStoreRepairCommand() *cobra.Command {
	var sizes sizeFlags
	var apply bool
	c := &cobra.Command{
		Use:   "repair DIR",
		Short: "Mend a store directory: print what would be done, or do it with --apply",
		Long: `Mend a store directory as the start of a node does, but with a look at all of the log: what stands behind its end is cut
off, damage inside it is closed with records that stand for the lost ones, queues and index are built from it again where
they do not agree with it. The commit log's bytes that are replaced are kept in quarantine/ first; queues and index are
derived from the log and are not kept.

Without --apply nothing is changed and nothing is locked: the plan is printed. With it the plan is printed too, and the
directory must not be open.`,
		Example: "  actormq store repair /var/lib/actormq",
		Args:    cobra.ExactArgs(1),
		RunE:    func(c *cobra.Command, args []string) error { return runRepair(c, args[0], sizes, apply) },
	}
	sizes.add(c)
	c.Flags().BoolVar(&apply, "apply", false, "do it")
	return c
}

func runRepair(c *cobra.Command, dir string, sizes sizeFlags, apply bool) error {
	disk := vfs.New()
	p, err := findStore(disk, dir, sizes)
	if err != nil {
		return err
	}
	found, err := verify.Run(disk, p, tellProgress(c.ErrOrStderr(), "verified"))
	if err != nil {
		return err
	}
	o := store.Options{FullScan: true, LogIsGone: true, RebuildIndex: found.In(verify.PartIndex), ReadOnly: true}
	last := ""
	o.Progress = func(p store.Progress) {
		if p.Step != last {
			last = p.Step
			fmt.Fprintf(c.ErrOrStderr(), "%s: %d MiB\n", p.Step, p.Total>>20)
		}
	}
	s, err := store.Open(disk, p, o)
	if err != nil {
		return err
	}
	plan := s.Report
	if err := s.Close(); err != nil {
		return err
	}
	printPlan(c, p.Dir, &plan, &found)
	if !apply {
		return nil
	}
	o.ReadOnly, o.Now = false, time.Now
	if s, err = store.Open(disk, p, o); err != nil {
		return err
	}
	if err := s.CloseClean(); err != nil {
		return err
	}
	fmt.Fprintln(c.OutOrStdout(), "done")
	if s.Report.Quarantine != "" {
		fmt.Fprintln(c.OutOrStdout(), "what was replaced in the log is kept in", s.Report.Quarantine)
	}
	return nil
}

// printPlan writes what a repair does, one step a line.
func printPlan(c *cobra.Command, dir string, r *store.Report, found *verify.Report) {
	w := c.OutOrStdout()
	fmt.Fprintf(w, "%s: %d findings; the log ends at %d; the plan:\n", dir, int64(len(found.Findings))+found.MoreFindings, r.Plan.End)
	for _, e := range r.Events {
		fmt.Fprintln(w, "  ", e)
	}
	if r.MoreEvents > 0 {
		fmt.Fprintf(w, "   and %d more steps\n", r.MoreEvents)
	}
	fmt.Fprintf(w, "   write the checkpoint, close properly\n")
}
