package main

import (
	"fmt"
	"os"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
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
		Offsets: n.gateway.Broker().Offsets, Logger: n.log.With().Str("part", "remote").Logger(),
	}
	var err error
	if r.Cert != "" || r.Key != "" || r.Trust != "" {
		if err = certificates(r, &cfg.Remote); err != nil {
			return err
		}
	}
	if n.remote, err = endpoint.Start(cfg); err != nil {
		return fmt.Errorf("serve actors of other processes: %w", err)
	}
	return nil
}

func certificates(r nodeconf.Remote, into *remote.Config) error {
	var pem [3][]byte
	for i, key := range []struct{ name, file string }{{"remoteCertPath", r.Cert}, {"remoteKeyPath", r.Key}, {"remoteTrustCertPath", r.Trust}} {
		if key.file == "" {
			return fmt.Errorf("%w: %s is missing: the three keys of certificates go together", nodeconf.ErrConfig, key.name)
		}
		var err error
		if pem[i], err = os.ReadFile(key.file); err != nil {
			return fmt.Errorf("%w: %s: %w", nodeconf.ErrConfig, key.name, err)
		}
	}
	var err error
	into.Server, into.Client, err = remote.Mutual(pem[0], pem[1], pem[2])
	return err
}
