package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
	"github.com/actormq/actormq/system/gateway/certs"
	"github.com/actormq/actormq/system/remote"
	"github.com/actormq/actormq/system/remote/endpoint"
)

// startRemote opens the port for actors of other processes, if there is to be one.
func (n *node) startRemote(conf *nodeconf.Config) error {
	r := conf.Remote
	if r.Listen == "" {
		return nil
	}
	cfg := endpoint.Config{
		Remote: remote.Config{Listen: r.Listen, Advertise: r.Advertise}, Store: n.store, Topics: n.gateway.Broker().Topics,
		Offsets: n.gateway.Broker().Offsets, Policy: n.gateway.Broker(), Logger: n.log.With().Str("part", "remote").Logger(),
	}
	var err error
	if r.Cert != "" || r.Key != "" || r.Trust != "" {
		if r.Cert == "" || r.Key == "" || r.Trust == "" {
			return fmt.Errorf("%w: remoteCertPath, remoteKeyPath and remoteTrustCertPath go together", nodeconf.ErrConfig)
		}
		n.certs, err = certs.Start(n.system.Root, certs.Config{
			Name: "remote-certificates", Disk: conf.Gateway.Disk, Logger: cfg.Logger,
			Files: certs.Files{Cert: r.Cert, Key: r.Key, Trust: r.Trust, ClientAuth: certs.ClientAuthRequire},
		})
		if err != nil {
			return fmt.Errorf("serve actors of other processes: %w", err)
		}
		cfg.Remote.TLS = n.certs.Mutual
	}
	if n.remote, err = endpoint.Start(cfg); err != nil {
		return fmt.Errorf("serve actors of other processes: %w", err)
	}
	return nil
}

// stopRemote closes the port.
func (n *node) stopRemote(ctx context.Context) (err error) {
	if n.remote != nil {
		err = n.remote.Stop(ctx)
	}
	if n.certs != nil {
		err = errors.Join(err, n.certs.Close())
	}
	return err
}
