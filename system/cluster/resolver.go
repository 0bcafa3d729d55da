package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrNobodyLeads: the group has no leader at the moment, or its leader no store endpoint.
var ErrNobodyLeads = errors.New("nobody leads")

// Resolver tells where the topics of a cluster live, from the membership in its etcd: as the Resolver of a remote client
// (package system/remote/client) it follows the leader through failovers. Safe for any goroutine.
type Resolver struct {
	client *clientv3.Client
	ctl    *control
}

// NewResolver returns a Resolver for a cluster by name, and asks nobody yet. Endpoints, host:port, are those of its etcd, of which one
// that answers is enough; secure is nil in the clear. Close it.
func NewResolver(cluster string, endpoints []string, secure *tls.Config) (*Resolver, error) {
	client, err := dial(endpoints, secure, newClientLog(zerolog.Nop()))
	if err != nil {
		return nil, err
	}
	return &Resolver{client: client, ctl: newControl(client, cluster)}, nil
}

// Leader is the address of the store endpoint on the node that leads, or ErrNobodyLeads.
func (r *Resolver) Leader(ctx context.Context, _, _ string) (string, error) { return r.ctl.remote(ctx) }

// Close ends the connection to etcd.
func (r *Resolver) Close() error {
	if err := r.client.Close(); err != nil {
		return fmt.Errorf("leave etcd: %w", err)
	}
	return nil
}

// Leader makes a member the Resolver of remote clients in its own process: those of actors that reach topics whichever node leads.
func (m *Member) Leader(ctx context.Context, _, _ string) (string, error) {
	return m.elector.ctl.remote(ctx)
}

func (c *control) remote(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	v, err := c.look(ctx)
	if err != nil {
		return "", err
	}
	leader := v.leader()
	if n := v.nodes[leader]; leader != "" && n.Remote != "" {
		return n.Remote, nil
	}
	return "", fmt.Errorf("%w a group of cluster %s, or its leader serves no actors of other processes", ErrNobodyLeads, c.prefix[len(keyRoot):len(c.prefix)-1])
}
