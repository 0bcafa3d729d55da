package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

func main() {
	if err := newRootCommand().Execute(); err != nil {
		fmt.Fprintf(os.Stderr, "actormq: %v\n", err)
		os.Exit(exitStatus(err))
	}
}

// statusError is an error with an exit status of its own.
type statusError struct {
	status int
	error
}

func (e statusError) Unwrap() error { return e.error }

// exitStatus is 1 for an error that does not say otherwise.
func exitStatus(err error) int {
	var own statusError
	if errors.As(err, &own) {
		return own.status
	}
	return 1
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "actormq",
		Short:         "A message store and broker that is compatible with RocketMQ 4.x",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(newNodeCommand(), newStoreCommand(), newProduceCommand(), newConsumeCommand(), newBenchCommand(),
		newDrainCommand(), newVersionCommand())
	return root
}
