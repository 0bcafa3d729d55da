package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/client"
)

// ErrNotFound: what a command was asked about is not there.
var ErrNotFound = errors.New("not found")

// flags are those of every command of this package.
type flags struct {
	ConnectFlags

	broker string
	json   bool
}

// cluster is what a running command works with. It belongs to one goroutine.
type cluster struct {
	*client.Client
	brokers    []client.Broker
	json       bool
	out, notes io.Writer
}

// row is what is printed, as a line or as JSON.
type row interface{ String() string }

const timeout = 5 * time.Second

// command makes a command that asks the cluster.
func (f *flags) command(c *cobra.Command, run func(ctx context.Context, cl *cluster, args []string) error) *cobra.Command {
	f.Bind(c, timeout)
	c.Flags().StringVar(&f.broker, "broker", "", "HOST:PORT of the one broker to ask; default: all masters that the name server knows")
	c.Flags().BoolVar(&f.json, "json", false, "print each line as a JSON object")
	c.RunE = func(cmd *cobra.Command, args []string) error {
		opt, err := f.Options()
		if err != nil {
			return err
		}
		ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
		defer cancel()
		cl := &cluster{Client: client.New(opt), json: f.json, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr()}
		defer cl.Close()
		if cl.brokers, err = f.brokers(ctx, cl.Client); err != nil {
			return err
		}
		return run(ctx, cl, args)
	}
	return c
}

// brokers are those to ask.
func (f *flags) brokers(ctx context.Context, c *client.Client) ([]client.Broker, error) {
	if f.broker != "" {
		if _, _, err := net.SplitHostPort(f.broker); err != nil {
			return nil, fmt.Errorf("--broker %s: want HOST:PORT: %w", f.broker, err)
		}
		return []client.Broker{{Name: f.broker, Address: f.broker}}, nil
	}
	all, err := c.Masters(ctx)
	if err == nil && len(all) == 0 {
		err = errors.New("the name server knows no broker")
	}
	return all, err
}

func (cl *cluster) print(r row) error {
	if cl.json {
		return WriteJSON(cl.out, r)
	}
	_, err := fmt.Fprintln(cl.out, r.String())
	return err
}

// done is what a command prints that changes something.
type done struct {
	Broker string `json:"broker,omitempty"`
	Done   string `json:"done"`
	Name   string `json:"name"`
}

func (d done) String() string {
	text := d.Done + " " + Shown(d.Name)
	if d.Broker != "" {
		text += " broker=" + d.Broker
	}
	return text
}

// each runs fn for every broker; nothing is left out because of an error.
func (cl *cluster) each(fn func(b client.Broker) error) error {
	var all []error
	for _, b := range cl.brokers {
		if err := fn(b); err != nil {
			all = append(all, fmt.Errorf("broker %s: %w", b.Name, err))
		}
	}
	return errors.Join(all...)
}

// confirmed is an error unless --yes was given.
func confirmed(yes bool, what string) error {
	if yes {
		return nil
	}
	return fmt.Errorf("this deletes %s: say --yes", what)
}

// notThere tells whether a broker has answered that it has no such topic or group.
func notThere(err error) bool {
	return client.HasCode(err, remoting.ResponseTopicNotExist, remoting.ResponseSubscriptionGroupNotExist)
}

// when shows a store time; 0 and less is none.
func when(ms int64) string {
	if ms <= 0 {
		return ""
	}
	return time.UnixMilli(ms).UTC().Format(timeFormat)
}

const timeFormat = "2006-01-02T15:04:05.000Z07:00"

// Commands are all commands of this package.
func Commands() []*cobra.Command {
	return []*cobra.Command{topicCommand(), groupCommand(), offsetCommand(), messageCommand(), deadCommand()}
}

// parent is a command that only has others below it.
func parent(use, short string, children ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs}
	c.AddCommand(children...)
	return c
}
