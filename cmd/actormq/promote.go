package main

import (
	"context"
	"errors"
	"fmt"
	"path"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/client"
)

// promotion is what stays of one, in the store's folder: whatever its configuration says, the node follows nobody any more.
type promotion struct {
	Offset messages.PhysicalOffset `json:"offset"` // where the log ended
	At     time.Time               `json:"at"`
}

var errNotPromoted = errors.New("the slave is not promoted")

func promotionPath(conf *nodeconf.Config) string { return path.Join(conf.Store.Dir, "promoted.json") }

// asPromoted makes the configuration of a slave that was promoted that of a master.
func asPromoted(conf *nodeconf.Config) (bool, error) {
	var p promotion
	found, err := metadata.Load(conf.Gateway.Disk, promotionPath(conf), &p)
	switch {
	case errors.Is(err, syscall.ENOTDIR):
		return false, fmt.Errorf("the store's folder %s: %w", conf.Store.Dir, syscall.ENOTDIR)
	case err != nil || !found || conf.Store.Role != messages.Slave:
		return false, err
	}
	conf.Store.Role, conf.Store.HAMaster = messages.AsyncMaster, ""
	conf.Gateway.Broker.BrokerID, conf.Gateway.Master = 0, ""
	return true, nil
}

// promote is the gateway's OnPromote: it waits for the master's last bytes, cuts the slave off from it for good, and has the node
// start again as the master.
func (n *node) promote(ctx context.Context, expect messages.PhysicalOffset) (messages.PhysicalOffset, error) {
	n.change.Lock()
	defer n.change.Unlock()
	for _, end := n.store.LogRange(); end < expect; _, end = n.store.LogRange() {
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: its log ends at %d, expected is %d", errNotPromoted, end, expect)
		case <-time.After(20 * time.Millisecond):
		}
	}
	takeOver, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	n.gateway.TakeOver(takeOver)
	_, end := n.store.LogRange()
	conf := n.conf.Load()
	if err := metadata.Save(conf.Gateway.Disk, promotionPath(conf), promotion{Offset: end, At: time.Now()}); err != nil {
		n.gateway.StaySlave()
		return 0, fmt.Errorf("%w: %w", errNotPromoted, err)
	}
	select {
	case n.promoted <- struct{}{}:
	default: // it is on its way
	}
	return end, nil
}

func newClusterPromoteCommand() *cobra.Command {
	var f tools.ConnectFlags
	var expect int64
	var wait time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "promote --expect-offset N [BROKER]",
		Short: "Make a slave the master, for good",
		Long: `Asks a running slave, 127.0.0.1:10911 or the BROKER named as HOST:PORT, to become the master: the way from RocketMQ without a stop.
It waits until its log ends at N or behind, takes topics, groups and offsets over once more, and then follows nobody any more: what the old
master still sends is refused, also after a restart (promoted.json in the store's folder; then brokerRole=SLAVE has no effect). N is where
the old master's log ends, once nobody sends to it.

Without access control (aclEnable) a node obeys only its own machine; with it, an administrator's account is needed.`,
		Example: `  actormq cluster promote --expect-offset 1073741824 127.0.0.1:10911`,
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address := "127.0.0.1:10911"
			if len(args) > 0 {
				address = args[0]
			}
			return runPromote(cmd, f, address, expect, wait, asJSON)
		},
	}
	f.Bind(c, 5*time.Second)
	c.Flags().Int64Var(&expect, "expect-offset", -1, "physical offset that the slave's log must have reached")
	c.Flags().DurationVar(&wait, "wait", 10*time.Second, "how long to wait for it, at most a minute")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	mustRequire(c, "expect-offset")
	return c
}

// promotedLine is what is said of a promotion.
type promotedLine struct {
	Broker string `json:"broker"`
	Offset int64  `json:"offset"` // from which it is the master
}

func runPromote(cmd *cobra.Command, f tools.ConnectFlags, address string, expect int64, wait time.Duration, asJSON bool) error {
	opt, err := f.Options()
	if err != nil {
		return err
	}
	opt.Timeout = wait + 2*stopTimeout
	c := client.New(opt)
	defer c.Close()
	answer, err := c.Call(cmd.Context(), address, remoting.NewRequest(remoting.RequestPromoteBroker,
		&remoting.PromoteHeader{ExpectOffset: expect, TimeoutMs: wait.Milliseconds()}))
	if err != nil {
		return err
	}
	if answer.Code != remoting.ResponseSuccess {
		return &client.RefusedError{Request: remoting.RequestPromoteBroker, Address: address, Code: answer.Code, Remark: answer.Remark}
	}
	var promoted remoting.PromotedAnswer
	if err := remoting.FromExt(answer.ExtFields, &promoted); err != nil {
		return err
	}
	if asJSON {
		return tools.WriteJSON(cmd.OutOrStdout(), promotedLine{Broker: address, Offset: promoted.Offset})
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s is the master from offset %d on\n", address, promoted.Offset)
	return nil
}
