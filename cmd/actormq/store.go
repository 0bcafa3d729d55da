package main

import "github.com/spf13/cobra"

func newStoreCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Look at a store directory, or mend it",
		Args:  cobra.NoArgs,
	}
	c.AddCommand(newStoreDumpCommand(), newStoreVerifyCommand(), newStoreRepairCommand())
	return c
}
