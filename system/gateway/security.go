package gateway

import (
	"maps"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/acl"
	"github.com/actormq/actormq/system/gateway/certs"
)

// startCertificates reads the certificates, unless no port speaks TLS.
func (n *Node) startCertificates() (err error) {
	if n.cfg.TLSMode == edge.TLSDisabled {
		return nil
	}
	n.certs, err = certs.Start(n.root, certs.Config{Disk: n.cfg.Disk, Files: n.cfg.TLSFiles, Logger: n.broker.Logger})
	n.stopping(err, func() error { return n.certs.Close() })
	return err
}

// startAccess reads the access rules, if there is access control.
func (n *Node) startAccess() (err error) {
	if n.cfg.ACLFile == "" {
		return nil
	}
	n.access, err = acl.Start(n.root, acl.Config{Disk: n.cfg.Disk, File: n.cfg.ACLFile, Broker: n.broker, Logger: n.broker.Logger})
	n.stopping(err, func() error { return n.access.Close() })
	return err
}

// guard puts access control before the ports; without it nothing is in the way of a request.
func (n *Node) guard(ports []edge.Port) {
	if n.access == nil {
		return
	}
	for i := range ports {
		if ports[i].Name == namesrvPort {
			ports[i].Check = func(r *edge.Request) error {
				if ofNode(r) {
					return nil
				}
				return n.access.CheckNames(r)
			}
			continue
		}
		check := n.access.CheckBroker
		ports[i].Check = func(r *edge.Request) error {
			switch r.Code {
			case remoting.RequestRelayBroker, remoting.RequestRelayHello, remoting.RequestNodeHello:
				return nil // they allow nothing: what is relayed is checked, here as well
			}
			if ofNode(r) {
				return nil
			}
			return check(r)
		}
		maps.Copy(ports[i].Routes, n.access.Routes())
	}
}
