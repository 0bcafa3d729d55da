package nodeconf

import (
	"context"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
)

// resolveTime is how long the name of an address is looked up.
const resolveTime = 5 * time.Second

// adminPortAbove is how far the admin port is above the broker's, unless it is set: beside RocketMQ's ports for replication.
const adminPortAbove = 3

// finishAddresses derives where the ports listen, and what others are told. Names are allowed: clients get the name, records
// and message ids have the address that it has now.
func (c *Config) finishAddresses() error {
	if c.AdvertisedIP == "" {
		c.AdvertisedIP = c.ListenIP
		if ip, err := netip.ParseAddr(c.ListenIP); err != nil || ip.IsUnspecified() {
			c.AdvertisedIP = firstAddress()
		}
	}
	if c.AdvertisedPort == 0 {
		c.AdvertisedPort = c.ListenPort
	}
	if c.ReplicationIP == "" {
		c.ReplicationIP = c.AdvertisedIP
	}
	addr, err := resolve(c.AdvertisedIP)
	if err != nil {
		return fmt.Errorf("%w: brokerIP1 is %q: %w", ErrConfig, c.AdvertisedIP, err)
	}
	if addr.IsUnspecified() {
		return fmt.Errorf("%w: brokerIP1 is %q: nobody can connect to it", ErrConfig, c.AdvertisedIP)
	}
	c.Store.StoreHost = netip.AddrPortFrom(addr, uint16(c.AdvertisedPort))
	c.Gateway.Broker.StoreHost = c.Store.StoreHost
	c.Gateway.Broker.Address = net.JoinHostPort(c.AdvertisedIP, strconv.Itoa(c.AdvertisedPort))
	c.Gateway.Listen = net.JoinHostPort(c.ListenIP, strconv.Itoa(c.ListenPort))
	c.Gateway.NameServerListen = c.NameServer
	c.Gateway.HAAddress = net.JoinHostPort(c.ReplicationIP, strconv.Itoa(c.HAListenPort))
	if !c.AdminAsked && c.ListenPort+adminPortAbove <= math.MaxUint16 {
		c.AdminListen = net.JoinHostPort("127.0.0.1", strconv.Itoa(c.ListenPort+adminPortAbove))
	}
	if c.VIPChannel && c.ListenPort > 2 {
		c.Gateway.VIPListen = net.JoinHostPort(c.ListenIP, strconv.Itoa(c.ListenPort-2))
	}
	return nil
}

func resolve(host string) (netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return addr, nil
	}
	if strings.ContainsAny(host, " /:") {
		return netip.Addr{}, fmt.Errorf("neither an address nor a name")
	}
	ctx, cancel := context.WithTimeout(context.Background(), resolveTime)
	defer cancel()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return netip.Addr{}, err
	}
	for _, addr := range found {
		if addr.Unmap().Is4() {
			return addr.Unmap(), nil // every client reads these
		}
	}
	return found[0], nil
}

// finishSecurity reads the file of TLS keys and derives what follows.
func (c *Config) finishSecurity() error {
	if c.TLSConfigFile != "" {
		if err := c.loadTLS(c.TLSConfigFile); err != nil {
			return err
		}
	}
	if c.Gateway.TLSFiles.Cert == "" && !c.TLSOwn && c.Gateway.TLSMode != edge.TLSDisabled {
		return fmt.Errorf("%w: tls.test.mode.enable is false, and there is no tls.server.certPath", ErrConfig)
	}
	if c.ACL {
		if c.Gateway.ACLFile = c.ACLFile; c.ACLFile == "" {
			c.Gateway.ACLFile = filepath.Join(c.Store.Dir, "config", "plain_acl.yml")
		}
	}
	return nil
}

// loadTLS takes the keys of the file that are not set elsewhere; those of clients are none of a node's.
func (c *Config) loadTLS(file string) error {
	p, err := loader.LoadFile(file)
	if err != nil {
		return fmt.Errorf("%w: read %s: %w", ErrConfig, file, err)
	}
	for _, key := range p.Keys() {
		if _, already := c.set[key]; already || strings.HasPrefix(key, "tls.client.") {
			continue
		}
		value, _ := p.Get(key)
		if !strings.HasPrefix(key, "tls.") {
			return fmt.Errorf("%w: %s has the key %s: only tls.* belongs there", ErrConfig, file, key)
		}
		if err := c.Set(key, value, file); err != nil {
			return err
		}
	}
	return nil
}

// containers is the range that container bridges take addresses from by default.
var containers = netip.MustParsePrefix("172.16.0.0/12")

// Reach says what is odd about where the node listens and what it tells others.
func (c *Config) Reach() []string {
	told := c.Store.StoreHost.Addr()
	listen, err := netip.ParseAddr(c.ListenIP)
	everywhere := err != nil || !listen.IsLoopback()
	var odd []string
	switch {
	case !everywhere && !told.IsLoopback():
		odd = append(odd, fmt.Sprintf("the broker listens on %s only, but clients are told to connect to %s: set bindAddress", c.ListenIP, c.AdvertisedIP))
	case everywhere && told.IsLoopback():
		odd = append(odd, fmt.Sprintf("clients are told to connect to %s, which no other machine can: set brokerIP1", c.AdvertisedIP))
	case told.IsLinkLocalUnicast():
		odd = append(odd, fmt.Sprintf("clients are told to connect to %s, which is good on one link only: set brokerIP1", c.AdvertisedIP))
	case containers.Contains(told.Unmap()) && c.set["brokerIP1"].value == "":
		odd = append(odd, fmt.Sprintf("clients are told to connect to %s, which is probably that of a container: set brokerIP1, and advertisedPort "+
			"if the port outside is another one", c.AdvertisedIP))
	}
	if host, _, err := net.SplitHostPort(c.AdminListen); err == nil && c.AdminListen != "" {
		far := !messages.IsLoopback(host)
		switch {
		case far && c.AdminPassFile == "":
			odd = append(odd, fmt.Sprintf("the admin port %s serves metrics and health only: set adminPasswordFile for console and profiles", c.AdminListen))
		case far:
			odd = append(odd, fmt.Sprintf("the admin port %s has no TLS: its password goes over the network as it is", c.AdminListen))
		}
	}
	return odd
}

// AdminPassword reads the password of the admin port; empty when it has none.
func (c *Config) AdminPassword() (string, error) {
	if c.AdminPassFile == "" {
		return "", nil
	}
	const least, most = 8, 1024
	text, err := os.ReadFile(c.AdminPassFile)
	if err != nil {
		return "", fmt.Errorf("%w: adminPasswordFile: %w", ErrConfig, err)
	}
	password := strings.TrimRight(string(text), "\r\n")
	if len(password) < least || len(password) > most || strings.ContainsAny(password, "\r\n") {
		return "", fmt.Errorf("%w: adminPasswordFile %s: want one line of %d to %d bytes", ErrConfig, c.AdminPassFile, least, most)
	}
	return password, nil
}
