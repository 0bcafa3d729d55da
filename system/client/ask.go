package client

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
)

// Ask sends a request with a header, nil for none, and reads the body of its answer into out, unless that is nil.
func (c *Client) Ask(ctx context.Context, address string, code int, h remoting.Header, out any) error {
	answer, err := c.ask(ctx, address, remoting.NewRequest(code, h), 0)
	if err != nil || out == nil {
		return err
	}
	if err := answer.DecodeBody(out); err != nil {
		return fmt.Errorf("%s at %s: %w", remoting.RequestName(code), address, err)
	}
	return nil
}

// Broker is a master of the cluster.
type Broker struct {
	Name, Address string
}

// Masters lists the masters that the name server knows (106, spec/remoting.md §5.3), sorted by name.
func (c *Client) Masters(ctx context.Context) ([]Broker, error) {
	err := ErrNoNameServer
	for _, address := range c.opt.NameServers {
		var info remoting.ClusterInfo
		if err = c.Ask(ctx, address, remoting.RequestGetBrokerClusterInfo, nil, &info); Unreached(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		var all []Broker
		for name, b := range info.BrokerAddrTable {
			if b.BrokerAddrs[masterID] != "" {
				all = append(all, Broker{Name: name, Address: b.BrokerAddrs[masterID]})
			}
		}
		slices.SortFunc(all, func(a, b Broker) int { return cmp.Compare(a.Name, b.Name) })
		return all, nil
	}
	return nil, err
}

// SetOptions changes options of a broker while it runs (25), all of them or none. A node forgets them when it ends; RocketMQ's brokers keep them, and
// take any name.
func (c *Client) SetOptions(ctx context.Context, address string, options map[string]string) error {
	r := remoting.NewRequest(remoting.RequestUpdateBrokerConfig, nil)
	escape := strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, "=", `\=`, ":", `\:`) // Java properties
	for _, name := range slices.Sorted(maps.Keys(options)) {
		r.Body = append(r.Body, escape.Replace(name)+"="+escape.Replace(options[name])+"\n"...)
	}
	_, err := c.ask(ctx, address, r, 0)
	return err
}

// NameServers are those that the client asks.
func (c *Client) NameServers() []string { return c.opt.NameServers }

// MessageAt reads the message at a physical offset (33).
func (c *Client) MessageAt(ctx context.Context, address string, at messages.PhysicalOffset) (*messages.StoredMessage, error) {
	answer, err := c.ask(ctx, address, remoting.NewRequest(remoting.RequestViewMessageByID, &remoting.ViewMessageHeader{Offset: int64(at)}), 0)
	if err != nil {
		return nil, err
	}
	found, err := record.DecodeAll(answer.Body)
	if err != nil || len(found) != 1 {
		return nil, fmt.Errorf("%s at %s: %d records: %w", remoting.RequestName(remoting.RequestViewMessageByID), address, len(found), err)
	}
	return &found[0], nil
}

// Query asks the index for messages (12); none is no error.
func (c *Client) Query(ctx context.Context, address string, h remoting.QueryMessageHeader) ([]messages.StoredMessage, error) {
	answer, err := c.ask(ctx, address, remoting.NewRequest(remoting.RequestQueryMessage, &h), 0)
	if HasCode(err, remoting.ResponseQueryNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := record.DecodeAll(answer.Body)
	if err != nil {
		return nil, fmt.Errorf("%s at %s: record %d of the answer: %w", remoting.RequestName(remoting.RequestQueryMessage), address, len(found), err)
	}
	return found, nil
}
