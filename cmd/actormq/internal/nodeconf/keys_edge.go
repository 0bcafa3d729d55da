package nodeconf

import (
	"fmt"
	"math"
	"net"
	"strings"
	"time"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/system/gateway/certs"
)

// edgeKeys are the keys of addresses, TLS and access control.
var edgeKeys = []keyDef{
	{"brokerIP2", "brokerIP1", "address by which replicas reach the broker", text(func(c *Config) *string { return &c.ReplicationIP })},
	{"advertisedPort", "listenPort", "port by which clients reach the broker, where it is not the same (NAT, containers)",
		integer(func(c *Config) *int { return &c.AdvertisedPort }, 1, math.MaxUint16)},

	{"adminListen", "127.0.0.1:listenPort+3", "host:port of console, metrics, health and profiles, empty for none", func(c *Config, value string) error {
		c.AdminListen, c.AdminAsked = value, true
		return nil
	}},
	{"adminPasswordFile", "", "file with the password of console and profiles; without it they are served on loopback only",
		text(func(c *Config) *string { return &c.AdminPassFile })},

	{"namesrvAddr", "", "name servers of a cluster that the node joins, host:port with ; between them",
		nameServers(func(c *Config) *[]string { return &c.Gateway.Join.NameServers })},
	{"registerNameServerPeriod", "30000", "ms between registrations at them", registerPeriod},
	{"registerBrokerTimeoutMills", "6000", "ms that a name server may take",
		millis(func(c *Config) *time.Duration { return &c.Gateway.Join.Timeout })},
	{"forceRegister", "true", "register even if the name server knows the topics already",
		negated(func(c *Config) *bool { return &c.Gateway.Join.IfChanged })},
	{"compressedRegister", "false", "register with a compressed body",
		boolean(func(c *Config) *bool { return &c.Gateway.Join.Compressed })},
	{"useTLS", "false", "connect to the name servers of namesrvAddr with TLS", boolean(func(c *Config) *bool { return &c.UseTLS })},

	{"aclEnable", "false", "requests must be signed by an account of aclFile", boolean(func(c *Config) *bool { return &c.ACL })},
	{"aclFile", "storePathRootDir/config/plain_acl.yml", "accounts; the files of the folder acl beside it count too",
		text(func(c *Config) *string { return &c.ACLFile })},

	{"tls.server.mode", "permissive", "disabled, permissive (both) or enforcing (TLS only)", tlsMode},
	{"tls.config.file", "", "properties file with the keys tls.*; those set elsewhere win", text(func(c *Config) *string { return &c.TLSConfigFile })},
	{"tls.test.mode.enable", "true", "without a certificate, use one that the node has made itself", boolean(func(c *Config) *bool { return &c.TLSOwn })},
	{"tls.server.certPath", "", "certificate chain of the server, PEM", text(func(c *Config) *string { return &c.Gateway.TLSFiles.Cert })},
	{"tls.server.keyPath", "", "its key, PEM, not encrypted", text(func(c *Config) *string { return &c.Gateway.TLSFiles.Key })},
	{"tls.server.trustCertPath", "", "who signs the certificates of clients, and those of the nodes of a cluster, PEM",
		text(func(c *Config) *string { return &c.Gateway.TLSFiles.Trust })},
	{"tls.server.need.client.auth", "none", "whether clients show certificates: none, optional or require", clientAuth},
	{"tls.server.authClient", "false", "the same, in RocketMQ's other spelling: true is require", authClient},
	{"tls.server.keyPassword", "", "must be empty: encrypted keys can't be read", noPassword},
}

func nameServers(field func(*Config) *[]string) applier {
	return func(c *Config, value string) error {
		var list []string
		for address := range strings.SplitSeq(value, ";") {
			if address = strings.TrimSpace(address); address == "" {
				continue
			}
			if _, _, err := net.SplitHostPort(address); err != nil {
				return fmt.Errorf("host:port with ; between them: %w", err)
			}
			list = append(list, address)
		}
		*field(c) = list
		return nil
	}
}

// registerPeriod is kept within RocketMQ's bounds: a name server forgets who is silent for two minutes.
func registerPeriod(c *Config, value string) error {
	const least, most = 10 * time.Second, 60 * time.Second
	var period time.Duration
	if err := millis(func(*Config) *time.Duration { return &period })(c, value); err != nil {
		return err
	}
	c.Gateway.Join.Interval = min(max(period, least), most)
	return nil
}

func tlsMode(c *Config, value string) error {
	for _, m := range []edge.TLSMode{edge.TLSDisabled, edge.TLSPermissive, edge.TLSEnforcing} {
		if strings.EqualFold(value, m.String()) {
			c.Gateway.TLSMode = m
			return nil
		}
	}
	return fmt.Errorf("disabled, permissive or enforcing")
}

func clientAuth(c *Config, value string) error {
	for _, a := range []certs.ClientAuth{certs.ClientAuthNone, certs.ClientAuthOptional, certs.ClientAuthRequire} {
		if strings.EqualFold(value, string(a)) {
			c.Gateway.TLSFiles.ClientAuth = a
			return nil
		}
	}
	return fmt.Errorf("none, optional or require")
}

func authClient(c *Config, value string) error {
	var must bool
	if err := boolean(func(*Config) *bool { return &must })(c, value); err != nil {
		return err
	}
	if must {
		c.Gateway.TLSFiles.ClientAuth = certs.ClientAuthRequire
	}
	return nil
}

func noPassword(_ *Config, value string) error {
	if value != "" {
		return fmt.Errorf("encrypted keys can't be read: give the key without a password, in a file that only the node can read")
	}
	return nil
}

func topicLimits(c *Config, value string) (err error) {
	c.Gateway.Broker.Policy.Limits, err = broker.ParseLimits(value)
	return err
}
