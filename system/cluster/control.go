package cluster

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/etcdserver"

	"github.com/actormq/actormq/system/gateway/vouch"
)

// keyRoot is in front of all keys.
const keyRoot = "/actormq/"

// ErrChanged: the record has been changed by somebody else meanwhile.
var ErrChanged = errors.New("the group's record has changed")

// control reads and writes the cluster's keys. Its methods wait for etcd, at most until their context ends.
type control struct {
	client *clientv3.Client
	own    *etcdserver.EtcdServer // the node's own etcd; nil: it is external
	prefix string                 // ends with a slash
}

func (c *control) groupKey() string         { return c.prefix + "group" }
func (c *control) leaderKey() string        { return c.prefix + "leader" }
func (c *control) nodeKey(id string) string { return c.prefix + "nodes/" + id }

func newControl(client *clientv3.Client, cluster string) *control {
	return &control{client: client, prefix: keyRoot + cluster + "/"}
}

// look reads all keys at once.
func (c *control) look(ctx context.Context) (view, error) {
	got, err := c.client.Get(ctx, c.prefix, clientv3.WithPrefix())
	if err != nil {
		return view{}, fmt.Errorf("read the cluster's keys: %w", err)
	}
	v := view{known: true, nodes: map[string]NodeState{}, at: got.Header.Revision}
	for _, kv := range got.Kvs {
		switch key := string(kv.Key); {
		case key == c.groupKey():
			v.record, v.rev = new(Record), kv.ModRevision
			err = json.Unmarshal(kv.Value, v.record)
		case key == c.leaderKey():
			v.leading, err = strconv.ParseInt(string(kv.Value), 10, 64)
		case key == c.secretKey():
			v.secret.secret, v.secret.err = vouch.ParseSecret(kv.Value)
		case strings.HasPrefix(key, c.nodeKey("")):
			var n NodeState
			err = json.Unmarshal(kv.Value, &n)
			v.nodes[n.ID] = n
		}
		if err != nil {
			return view{}, fmt.Errorf("read the cluster's key %s: %w", kv.Key, err)
		}
	}
	return v, nil
}

// watch calls changed with each change, until it fails, the context ends or etcd can't be watched. The error says why.
func (c *control) watch(ctx context.Context, from int64, changed func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for answer := range c.client.Watch(clientv3.WithRequireLeader(ctx), c.prefix, clientv3.WithPrefix(), clientv3.WithRev(from)) {
		if err := answer.Err(); err != nil {
			return fmt.Errorf("watch the cluster's keys: %w", err)
		}
		if err := changed(); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// grant makes a lease.
func (c *control) grant(ctx context.Context, d time.Duration) (clientv3.LeaseID, error) {
	lease, err := c.client.Grant(ctx, int64(d/time.Second))
	if err != nil {
		return 0, fmt.Errorf("get a lease: %w", err)
	}
	return lease.ID, nil
}

func (c *control) renew(ctx context.Context, lease clientv3.LeaseID) error {
	if _, err := c.client.KeepAliveOnce(ctx, lease); err != nil {
		return fmt.Errorf("renew the lease: %w", err)
	}
	return nil
}

func (c *control) revoke(ctx context.Context, lease clientv3.LeaseID) error {
	if _, err := c.client.Revoke(ctx, lease); err != nil {
		return fmt.Errorf("give the lease back: %w", err)
	}
	return nil
}

// say writes what a node says of itself, for as long as its lease lives. Whoever looks at that revision or a later one sees it.
func (c *control) say(ctx context.Context, n NodeState, lease clientv3.LeaseID) (int64, error) {
	value, err := json.Marshal(n)
	if err != nil {
		return 0, fmt.Errorf("write the node's state: %w", err)
	}
	done, err := c.client.Put(ctx, c.nodeKey(n.ID), string(value), clientv3.WithLease(lease))
	if err != nil {
		return 0, fmt.Errorf("write the node's state: %w", err)
	}
	return done.Header.Revision, nil
}

// found makes the group, with its first leader, where there is none.
func (c *control) found(ctx context.Context, id string, lease clientv3.LeaseID) (*Record, int64, error) {
	var random [16]byte
	_, _ = rand.Read(random[:]) // it never fails
	next := &Record{Group: hex.EncodeToString(random[:]), Epoch: 1, Leader: id, InSync: []string{id}}
	rev, err := c.change(ctx, 0, next, lease)
	return next, rev, err
}

// change replaces the record that was last changed at rev, 0 where there is none; with a lease, the leader's key is made too, where
// there is none: without a record it counts for nothing. The error is ErrChanged when nothing was done; after any other it is not known
// what was.
func (c *control) change(ctx context.Context, rev int64, next *Record, lease clientv3.LeaseID) (int64, error) {
	value, err := json.Marshal(next)
	if err != nil {
		return 0, fmt.Errorf("change the group's record: %w", err)
	}
	when := []clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(c.groupKey()), "=", rev)}
	then := []clientv3.Op{clientv3.OpPut(c.groupKey(), string(value))}
	if lease != 0 {
		if rev != 0 {
			when = append(when, clientv3.Compare(clientv3.CreateRevision(c.leaderKey()), "=", 0))
		}
		then = append(then, clientv3.OpPut(c.leaderKey(), strconv.FormatInt(next.Epoch, 10), clientv3.WithLease(lease)))
	}
	done, err := c.client.Txn(ctx).If(when...).Then(then...).Commit()
	if err != nil {
		return 0, fmt.Errorf("change the group's record: %w", err)
	}
	if !done.Succeeded {
		return 0, ErrChanged
	}
	return done.Header.Revision, nil
}

// resign takes the leader's key away, if it is still that of the epoch: the others need not wait for the lease to pass.
func (c *control) resign(ctx context.Context, epoch int64) error {
	_, err := c.client.Txn(ctx).If(clientv3.Compare(clientv3.Value(c.leaderKey()), "=", strconv.FormatInt(epoch, 10))).
		Then(clientv3.OpDelete(c.leaderKey())).Commit()
	if err != nil {
		return fmt.Errorf("give the lead up: %w", err)
	}
	return nil
}

// leads tells whether this node's etcd leads. It waits for nothing.
func (c *control) leads() bool { return c.own != nil && c.own.Leader() == c.own.MemberID() }

// passOn has etcd led by another node than this one.
func (c *control) passOn(ctx context.Context, to string) error {
	for _, m := range c.own.Cluster().Members() {
		if m.Name == to {
			if err := c.own.MoveLeader(ctx, uint64(c.own.MemberID()), uint64(m.ID)); err != nil {
				return fmt.Errorf("have etcd led by node %s: %w", to, err)
			}
		}
	}
	return nil
}
