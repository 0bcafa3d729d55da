package main

import "github.com/spf13/cobra"

func newStoreCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Look at a store directory, mend it, copy it",
		Args:  cobra.NoArgs,
	}
	c.AddCommand(newStoreDumpCommand(), newStoreVerifyCommand(), newStoreRepairCommand(), newStoreBackupCommand(),
		newStoreRestoreCommand(), newStoreExportCommand(), newStoreImportCommand())
	return c
}
