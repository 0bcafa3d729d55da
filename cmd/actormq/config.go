package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
	"github.com/actormq/actormq/cmd/actormq/internal/tools"
)

func newConfigCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Check configurations, list the keys, and change those of running brokers", Args: cobra.NoArgs}
	c.AddCommand(newConfigCheckCommand(), newConfigKeysCommand(), tools.ConfigSet())
	return c
}

func newConfigKeysCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "keys", Short: "List all keys of broker.conf", Args: cobra.NoArgs, Example: "  actormq config keys > docs/CONFIG.md",
		Long: "Prints a Markdown table of every key with its default, what it does, and whether it changes while the node runs.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return tools.WriteJSON(cmd.OutOrStdout(), nodeconf.Keys())
			}
			_, err := fmt.Fprint(cmd.OutOrStdout(), nodeconf.Reference())
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array")
	return c
}

// configLine is what is said of a configuration, or of one key.
type configLine struct {
	OK      bool              `json:"ok"`
	Ignored []string          `json:"withoutEffect,omitempty"`
	Odd     []string          `json:"warnings,omitempty"`
	Values  map[string]string `json:"values,omitempty"`
}

func newConfigCheckCommand() *cobra.Command {
	var f nodeFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "check -c FILE",
		Short: "Check a broker.conf without starting a node",
		Long: `Reads a configuration as node would, environment included, and says what is wrong with it, which keys have no effect, and what is odd.
The exit status is 1 when a node would not start with it; names are looked up, but no port is opened and no store is touched.`,
		Example: "  actormq config check -c broker.conf --set brokerName=broker-b",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			conf, err := f.configuration(cmd)
			if err != nil {
				return err
			}
			if asJSON {
				return tools.WriteJSON(cmd.OutOrStdout(), configLine{OK: true, Ignored: conf.Ignored, Odd: conf.Odd(), Values: conf.Effective()})
			}
			for _, key := range conf.Ignored {
				fmt.Fprintf(cmd.OutOrStdout(), "warning: %s has no effect\n", key)
			}
			for _, odd := range conf.Odd() {
				fmt.Fprintf(cmd.OutOrStdout(), "warning: %s\n", odd)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "ok: %d keys\n", len(conf.Effective()))
			return nil
		},
	}
	c.Flags().StringVarP(&f.config, "config", "c", "", "broker.conf to read")
	c.Flags().StringArrayVar(&f.set, "set", nil, "key=value, any number of times")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	mustRequire(c, "config")
	return c
}
