package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	if err := newRootCommand().Execute(); err != nil {
		fmt.Fprintf(os.Stderr, "actormq: %v\n", err)
		os.Exit(1)
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "actormq",
		Short:         "A message store and broker that is compatible with RocketMQ 4.x",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newNodeCommand(), newStoreCommand(), newProduceCommand(), newConsumeCommand(), newBenchCommand())
	return root
}
