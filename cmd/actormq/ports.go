package main

import (
	"fmt"
	"net"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
)

// freePorts fails when a port is taken on which a node is to serve. It is asked before the store is opened: making or recovering it may take long,
// and a node that ends for its port has not touched it. A port that is taken right afterwards ends the start all the same. Replication is the
// one for slaves, if any.
func freePorts(conf *nodeconf.Config, replication string) error {
	for _, p := range []struct{ name, address string }{
		{"broker", conf.Gateway.Listen}, {"vip", conf.Gateway.VIPListen}, {"name server", conf.Gateway.NameServerListen}, {"remote", conf.Remote.Listen},
		{"replication", replication},
	} {
		if p.address == "" {
			continue
		}
		l, err := net.Listen("tcp", p.address)
		if err == nil {
			err = l.Close()
		}
		if err != nil {
			return fmt.Errorf("the %s port: %w", p.name, err)
		}
	}
	return nil
}
