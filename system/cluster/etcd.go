package cluster

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
)

// Pace of the embedded etcd. A lease can't be shorter than one and a half elections.
const (
	etcdTick     = 100 * time.Millisecond
	etcdElection = 600 * time.Millisecond
)

// connect returns a client of the cluster's etcd, and what ends it.
func connect(c Config) (*clientv3.Client, func(), error) {
	if len(c.Etcd) > 0 {
		client, err := dial(c.Etcd)
		if err != nil {
			return nil, nil, err
		}
		return client, func() { _ = client.Close() }, nil
	}
	server, err := startEtcd(c)
	if err != nil {
		return nil, nil, err
	}
	client := v3client.New(server.Server)
	return client, func() {
		_ = client.Close()
		server.Close()
	}, nil
}

func dial(endpoints []string) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialTimeout: askTimeout, DialKeepAliveTime: askTimeout, DialKeepAliveTimeout: askTimeout,
	})
	if err != nil {
		return nil, fmt.Errorf("connect to etcd: %w", err)
	}
	return client, nil
}

// startEtcd starts this node's etcd. It does not wait for the others.
func startEtcd(c Config) (*embed.Etcd, error) {
	e := embed.NewConfig()
	e.Name, e.Dir = c.ID, c.EtcdDir
	e.LogLevel = "fatal" // what matters shows in what the node can or cannot do
	e.TickMs, e.ElectionMs = uint(etcdTick.Milliseconds()), uint(etcdElection.Milliseconds())
	e.AutoCompactionMode, e.AutoCompactionRetention = "periodic", "1h"
	me := c.node(c.ID)
	peer, err := url.Parse("http://" + me.Port(PortPeer))
	client, bad := url.Parse("http://" + me.Port(PortClient))
	if err = errors.Join(err, bad); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	e.ListenPeerUrls, e.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	e.ListenClientUrls, e.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	var all []string
	for _, n := range c.Nodes {
		all = append(all, n.ID+"=http://"+n.Port(PortPeer))
	}
	e.InitialCluster, e.InitialClusterToken = strings.Join(all, ","), c.Name
	server, err := embed.StartEtcd(e)
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w", c.EtcdDir, err)
	}
	return server, nil
}
