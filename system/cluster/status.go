package cluster

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/rs/zerolog"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Status is what etcd has of a cluster.
type Status struct {
	Cluster string `json:"cluster"`
	Record
	Leads bool        `json:"leads"` // the leader's lease lives
	Nodes []NodeState `json:"nodes"` // those whose leases live, by id
}

// Read tells of every cluster in an etcd, by name. One endpoint, host:port, is asked after the other, under TLS where that
// is not nil.
func Read(ctx context.Context, endpoints []string, secure *tls.Config) ([]Status, error) {
	why := newClientLog(zerolog.Nop())
	client, err := dial(endpoints, secure, why)
	if err != nil {
		return nil, err
	}
	defer func() { _ = client.Close() }()
	got, err := client.Get(ctx, keyRoot, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		err = fmt.Errorf("ask etcd at %s: %w", strings.Join(endpoints, ","), err)
		if cause := why.last(); cause != "" {
			err = fmt.Errorf("%w: %s", err, cause)
		}
		return nil, err
	}
	names := map[string]bool{}
	for _, kv := range got.Kvs {
		name, _, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), keyRoot), "/")
		names[name] = true
	}
	var all []Status
	for _, name := range slices.Sorted(maps.Keys(names)) {
		v, err := newControl(client, name).look(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, v.status(name))
	}
	return all, nil
}

func (v *view) status(name string) Status {
	s := Status{Cluster: name, Leads: v.leader() != "", Nodes: slices.Collect(maps.Values(v.nodes))}
	if v.record != nil {
		s.Record = *v.record
	}
	byID := func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
	s.InSync = slices.SortedFunc(slices.Values(s.InSync), byID) // in a fixed order, not in that of coming into sync
	slices.SortFunc(s.Nodes, func(a, b NodeState) int { return byID(a.ID, b.ID) })
	return s
}
