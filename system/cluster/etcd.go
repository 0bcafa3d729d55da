package cluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.etcd.io/etcd/server/v3/etcdserver"
	"go.etcd.io/etcd/server/v3/etcdserver/api/v3client"
	"go.uber.org/zap"
)

// Pace of the embedded etcd. A lease can't be shorter than one and a half elections.
const (
	etcdTick     = 100 * time.Millisecond
	etcdElection = 600 * time.Millisecond
	// etcdFarewell is how long its clients get to leave when it is stopped, and another one to take over its lead.
	etcdFarewell = time.Second
)

// connect returns a client of the cluster's etcd, this node's etcd, nil where it is external, and what ends them.
func connect(c Config) (*clientv3.Client, *etcdserver.EtcdServer, func(), error) {
	if len(c.Etcd) > 0 {
		client, err := dial(c.Etcd, c.client(), newClientLog(c.Logger))
		if err != nil {
			return nil, nil, nil, err
		}
		return client, nil, func() { _ = client.Close() }, nil
	}
	server, err := startEtcd(c)
	if err != nil {
		return nil, nil, nil, err
	}
	client := v3client.New(server.Server)
	return client, server.Server, func() {
		_ = client.Close()
		stopEtcd(server)
	}, nil
}

// stopEtcd stops this node's etcd. Its ports wait for peers that are connected and say nothing; nobody waits for that.
func stopEtcd(server *embed.Etcd) {
	stopServer(server.Server)
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		server.Close()
	}()
	select {
	case <-closed:
	case <-time.After(etcdFarewell):
	}
}

// stopServer stops an etcd. One that leads hands its lead on first; the library waits for that for 6 s where the others have gone meanwhile.
func stopServer(s interface {
	Stop()
	HardStop()
}) {
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		s.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(etcdFarewell):
		s.HardStop()
		<-stopped
	}
}

// dial connects to an etcd. What its client has to say goes to why.
func dial(endpoints []string, secure *tls.Config, why *etcdLog) (*clientv3.Client, error) {
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, DialTimeout: askTimeout, DialKeepAliveTime: askTimeout, DialKeepAliveTimeout: askTimeout,
		TLS: secure, Logger: zap.New(why),
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
	e.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.New(newEtcdLog(c.Logger)))
	e.TickMs, e.ElectionMs = uint(etcdTick.Milliseconds()), uint(etcdElection.Milliseconds())
	e.AutoCompactionMode, e.AutoCompactionRetention = "periodic", "1h"
	scheme := "http://"
	if c.TLS != nil {
		scheme = "https://"
		files := &e.PeerTLSInfo // read again with each connection
		files.CertFile, files.KeyFile, files.TrustedCAFile, files.ClientCertAuth = c.Files.Cert, c.Files.Key, c.Files.Trust, true
		e.ClientTLSInfo = *files
	}
	me := c.node(c.ID)
	peer, err := url.Parse(scheme + me.Port(PortPeer))
	client, bad := url.Parse(scheme + me.Port(PortClient))
	if err = errors.Join(err, bad); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	e.ListenPeerUrls, e.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	e.ListenClientUrls, e.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	var all []string
	for _, n := range c.Nodes {
		all = append(all, n.ID+"="+scheme+n.Port(PortPeer))
	}
	e.InitialCluster, e.InitialClusterToken = strings.Join(all, ","), c.Name
	server, err := embed.StartEtcd(e)
	if err != nil {
		return nil, fmt.Errorf("start etcd in %s: %w", c.EtcdDir, err)
	}
	return server, nil
}
