package tools

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/system/client"
)

// keySet is a key that was changed.
type keySet struct {
	Broker string `json:"broker"`
	Key    string `json:"key"`
	Value  string `json:"value"`
}

func (k keySet) String() string {
	return fmt.Sprintf("set %s=%s broker=%s", Shown(k.Key), Shown(k.Value), Shown(k.Broker))
}

// ConfigSet is the command that changes keys of running brokers.
func ConfigSet() *cobra.Command {
	var f flags
	return f.command(&cobra.Command{
		Use: "set KEY=VALUE...", Short: "Change keys of running brokers",
		Long: `Changes keys of brokers that run, all of them or none, at once. "actormq config keys" says which keys that can be; a node refuses
the others, and forgets what was changed when it ends: write it into its broker.conf as well. RocketMQ's brokers take every key, and write it there
themselves.`,
		Example: "  actormq config set fileReservedTime=24\n  actormq config set --broker 10.0.0.5:10911 'topicLimits=orders=1000,5000000' longPollingEnable=true",
		Args:    cobra.MinimumNArgs(1),
	}, func(ctx context.Context, cl *cluster, args []string) error {
		options := map[string]string{}
		for _, arg := range args {
			key, value, ok := strings.Cut(arg, "=")
			if key = strings.TrimSpace(key); !ok || key == "" {
				return fmt.Errorf("%q: want KEY=VALUE", arg)
			}
			if _, twice := options[key]; twice {
				return fmt.Errorf("%s is there twice", key)
			}
			options[key] = value
		}
		return cl.each(func(b client.Broker) error {
			if err := cl.SetOptions(ctx, b.Address, options); err != nil {
				return err
			}
			for _, key := range slices.Sorted(maps.Keys(options)) {
				if err := cl.print(keySet{b.Name, key, options[key]}); err != nil {
					return err
				}
			}
			return nil
		})
	})
}
