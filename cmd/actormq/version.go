package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
)

// version is set when a release is built (-ldflags "-X main.version=…").
var version = ""

// versionText is the release, or what the build knows of where it came from.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return "dev-" + s.Value[:min(len(s.Value), 12)]
			}
		}
	}
	return "dev"
}

// versionLine is what the command prints.
type versionLine struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	OS      string `json:"os"`
	Arch    string `json:"arch"`
}

func newVersionCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  actormq version --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versionLine{Version: versionText(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
			if asJSON {
				return tools.WriteJSON(cmd.OutOrStdout(), v)
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "actormq %s (%s, %s/%s)\n", v.Version, v.Go, v.OS, v.Arch)
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}
