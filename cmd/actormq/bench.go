package main

import (
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/storebench"
)

func newBenchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure",
		Args:  cobra.NoArgs,
	}
	c.AddCommand(newBenchStoreCommand())
	return c
}

func newBenchStoreCommand() *cobra.Command {
	var o storebench.Options
	c := &cobra.Command{
		Use:   "store --dir DIR",
		Short: "Measure the store in process",
		Long: `Runs one workload against a store in this process and prints one line of JSON: rates, latencies in microseconds, CPU time
and memory. DIR is removed before and after; one that no bench has made is refused. Arguments and fields are those of the benches of other stores in testkit/bench.`,
		Example: `  actormq bench store --dir /tmp/b --workload put --threads 4 --body 128
  actormq bench store --dir /tmp/b --workload put-sync --outstanding 64
  actormq bench store --dir /tmp/b --workload recover --exit crash --mb 1000`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer cancel()
			return storebench.Run(ctx, &o, cmd.OutOrStdout())
		},
	}
	o.Flags(c.Flags())
	return c
}
