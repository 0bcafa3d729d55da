package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/system/client"
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

// Exit statuses; docs/CLI.md has all.
const (
	statusNotFound  = 3
	statusUnreached = 4
)

// exitStatus is 1 for an error that does not say otherwise.
func exitStatus(err error) int {
	var own statusError
	if errors.As(err, &own) {
		return own.status
	}
	switch {
	case errors.Is(err, tools.ErrNotFound):
		return statusNotFound
	case client.Unreached(err):
		return statusUnreached
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
		newDrainCommand(), newClusterCommand(), newConfigCommand(), newVersionCommand())
	root.AddCommand(tools.Commands()...)
	root.InitDefaultCompletionCmd() // now, so that it is looked through as well
	root.SetFlagErrorFunc(withUsage)
	sayUsage(root)
	return root
}

// sayUsage has a command that is called with the wrong arguments say how it wants to be called.
func sayUsage(c *cobra.Command) {
	for _, sub := range c.Commands() {
		sayUsage(sub)
	}
	if c.HasParent() && c.HasSubCommands() && !c.Runnable() { // cobra would show the help of it for any word behind it, with status 0
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
		c.DisableFlagsInUseLine = true
	}
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			if err == nil {
				err = c.ValidateRequiredFlags() // cobra does that too, and says no usage
			}
			if err != nil {
				return withUsage(c, err)
			}
			return nil
		}
	}
}

func withUsage(c *cobra.Command, err error) error {
	usage := c.UseLine()
	if c.HasParent() && c.HasSubCommands() {
		usage = c.CommandPath() + " COMMAND"
	}
	return fmt.Errorf("%w\nusage: %s; %s --help says more", err, usage, c.CommandPath())
}
