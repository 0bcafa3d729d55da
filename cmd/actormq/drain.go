package main

import (
	"context"
	"fmt"
	"net"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

// drainGrace is longer than clients take to ask for routes again (spec/remoting.md §5.2).
const drainGrace = 35 * time.Second

type drainFlags struct {
	tools.ConnectFlags

	grace time.Duration
	async bool
	json  bool
}

// drainLine is what is said of a drain.
type drainLine struct {
	Broker  string `json:"broker"`
	Stopped bool   `json:"stopped"` // false: it was asked only (--async)
}

func newDrainCommand() *cobra.Command {
	var f drainFlags
	c := &cobra.Command{
		Use:   "drain [flags] [BROKER]",
		Short: "Stop a node without a send that fails",
		Long: `Asks a running node, 127.0.0.1:10911 or the BROKER named as HOST:PORT, to stop in good order. Producers are sent to other brokers:
the node's topics become read-only in the routes, and everything is served until the grace is over, in which clients
learn that. Then it unregisters at its name servers, finishes what is in flight and ends, as by SIGTERM. Consumers read from
it until then.

A node of a replica group has another one lead, once what it was asked is answered, and relays to that one for the grace: by then every
client has asked for routes. No client sees an error.

Without access control (aclEnable) a node obeys only its own machine; with it, an administrator's account is needed. SIGTERM
alone stops a node within 5 s, one that leads a replica group behind its --stop-grace: sends that reach it meanwhile are refused with
a code on which RocketMQ's clients try another broker; the group's are relayed for the grace.

The command returns when the node has closed the connection; with --async at once.`,
		Example: `  actormq drain
  actormq drain --grace 1m --access-key admin --secret-key @secret 10.0.0.5:10911`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			address := "127.0.0.1:10911"
			if len(args) > 0 {
				address = args[0]
			}
			return runDrain(cmd, f, address)
		},
	}
	f.Bind(c, 5*time.Second)
	c.Flags().DurationVar(&f.grace, "grace", drainGrace, "how long to serve on; clients ask for routes every 30 s")
	c.Flags().BoolVar(&f.async, "async", false, "do not wait until the node has stopped")
	c.Flags().BoolVar(&f.json, "json", false, "print a JSON object")
	return c
}

func runDrain(cmd *cobra.Command, f drainFlags, address string) error {
	opt, err := f.Options()
	if err != nil {
		return err
	}
	if _, _, err := net.SplitHostPort(address); err != nil {
		return fmt.Errorf("%q: want HOST:PORT: %w", address, err)
	}
	gone := make(chan struct{}, 1)
	opt.Lost = func(string) { gone <- struct{}{} }
	c := client.New(opt)
	defer c.Close()
	ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	answer, err := c.Call(ctx, address, remoting.NewRequest(remoting.RequestDrainBroker, &remoting.DrainHeader{GraceMs: f.grace.Milliseconds()}))
	if err != nil {
		return err
	}
	if answer.Code != remoting.ResponseSuccess {
		return &client.RefusedError{Request: remoting.RequestDrainBroker, Address: address, Code: answer.Code, Remark: answer.Remark}
	}
	if !f.async {
		if err := awaitEnd(ctx, c, address, f.grace, gone); err != nil {
			return err
		}
	}
	if f.json {
		return tools.WriteJSON(cmd.OutOrStdout(), drainLine{Broker: address, Stopped: !f.async})
	}
	return nil
}

// awaitEnd keeps the connection in use until the node closes it: an idle one would be closed by itself.
func awaitEnd(ctx context.Context, c *client.Client, address string, grace time.Duration, gone <-chan struct{}) error {
	const beat = 30 * time.Second
	most := grace + 3*stopTimeout // a leader answers what it was asked, and hands over, first; in the end it stops
	deadline := time.After(most)
	for {
		select {
		case <-gone:
			return nil
		case <-ctx.Done():
			return errInterrupted
		case <-deadline:
			return fmt.Errorf("%s still serves %v after it was asked to stop", address, most)
		case <-time.After(beat):
			// Whatever it answers: that it does is what counts.
			_, _ = c.Call(ctx, address, remoting.NewRequest(remoting.RequestGetBrokerRuntimeInfo, nil))
		}
	}
}

// drained stops a node that was asked to drain: at once if a signal comes.
func (n *node) drained(ctx context.Context, grace time.Duration) {
	n.log.Info().Str("grace_s", strconv.FormatFloat(grace.Seconds(), 'f', -1, 64)).Msg("asked to drain")
	n.gateway.Drain(ctx, grace)
}

// askDrain passes on the first request to drain.
func (n *node) askDrain(grace time.Duration) {
	select {
	case n.drain <- grace:
	default: // it was asked already
	}
}
