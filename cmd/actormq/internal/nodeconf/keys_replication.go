package nodeconf

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/actormq/actormq/messages"
)

// replicationKeys are the keys of master and slave.
var replicationKeys = []keyDef{
	{"brokerRole", "ASYNC_MASTER", "ASYNC_MASTER, SYNC_MASTER or SLAVE; a master that is told its role serves slaves", role},
	{"haListenPort", "listenPort + 1", "port on which a master serves slaves; open when it or brokerRole is set",
		integer(func(c *Config) *int { return &c.HAListenPort }, 1, math.MaxUint16)},
	{"haAllow", "", "hosts and networks (10.0.0.7, 10.1.0.0/16), separated by commas, that may connect to the replication port; empty: all that reach it",
		hosts(func(c *Config) *[]netip.Prefix { return &c.Store.HAAllow })},
	{"haMasterAddress", "", "host:port of the master's haListenPort, for a slave; empty: what a name server says",
		address(func(c *Config) *string { return &c.Store.HAMaster })},
	{"masterAddress", "haMasterAddress, port - 1", "host:port of the master's broker, whose configuration a slave takes over",
		address(func(c *Config) *string { return &c.Gateway.Master })},
	{"haFullCopy", "false", "an empty slave copies the master's whole log, not just its last file",
		boolean(func(c *Config) *bool { return &c.Store.HAFullCopy })},
	{"haSendHeartbeatInterval", "5000", "ms without data after which master and slave say that they are there",
		millis(func(c *Config) *time.Duration { return &c.Store.HAHeartbeat })},
	{"haHousekeepingInterval", "20000", "ms of silence that end a connection of replication",
		millis(func(c *Config) *time.Duration { return &c.Store.HAHousekeeping })},
	{"haTransferBatchSize", "32768", "bytes of a frame of replication, more where a record is larger",
		integer(func(c *Config) *int { return &c.Store.HABatchBytes }, 1, math.MaxInt32)},
	{"haSlaveFallbehindMax", "268435456", "bytes that a slave may lack and still count for puts that wait for one",
		number(func(c *Config) *int64 { return &c.Store.HAFallbehind }, 1, math.MaxInt64)},
	{"haUnreadMemory", "268435456", "bytes of the end of its log that a slave keeps in memory while nobody reads there; 0: what the system leaves",
		unreadMemory},
	{"slaveTimeout", "3000", "ms that a put waits for a slave under SYNC_MASTER",
		millis(func(c *Config) *time.Duration { return &c.Store.SlaveTimeout })},
}

// unreadMemory takes 0, which means any here, for -1, as 0 is the default in the options.
func unreadMemory(c *Config, value string) error {
	n := &c.Store.HAUnreadMemory
	err := number(func(*Config) *int64 { return n }, 0, math.MaxInt64)(c, value)
	if err == nil && *n == 0 {
		*n = -1
	}
	return err
}

func role(c *Config, value string) error {
	r, ok := messages.ParseBrokerRole(value)
	if !ok {
		return fmt.Errorf("ASYNC_MASTER, SYNC_MASTER or SLAVE")
	}
	c.Store.Role = r
	return nil
}

// hosts are addresses and networks, separated by commas, or nothing.
func hosts(field func(*Config) *[]netip.Prefix) applier {
	return func(c *Config, value string) error {
		var all []netip.Prefix
		for _, one := range strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' }) {
			p, ok := network(one)
			if !ok {
				return errHosts
			}
			all = append(all, p)
		}
		if len(all) == 0 && value != "" {
			return errHosts // nothing would let everybody in
		}
		*field(c) = all
		return nil
	}
}

var errHosts = errors.New("hosts and networks as 10.0.0.7,10.1.0.0/16")

// network is a host or a network, of IPv4 also when it is written as one of IPv6.
func network(text string) (netip.Prefix, bool) {
	p, err := netip.ParsePrefix(text)
	if host, bad := netip.ParseAddr(text); bad == nil {
		p, err = netip.PrefixFrom(host, host.BitLen()), nil
	}
	if err != nil {
		return netip.Prefix{}, false
	}
	if p.Addr().Is4In6() {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96) // invalid where it is wider than all of IPv4
	}
	return p.Masked(), p.IsValid()
}

// address is host:port, or nothing.
func address(field func(*Config) *string) applier {
	return func(c *Config, value string) error {
		if value != "" {
			if _, port, err := net.SplitHostPort(value); err != nil || port == "" {
				return fmt.Errorf("host:port")
			}
		}
		*field(c) = value
		return nil
	}
}

// finishReplication derives who replicates from whom.
func (c *Config) finishReplication() error {
	if c.HAListenPort == 0 {
		c.HAListenPort = c.ListenPort + 1
	}
	if c.Store.Role != messages.Slave {
		c.Gateway.Broker.BrokerID = 0 // as RocketMQ
		_, told := c.set["brokerRole"]
		_, port := c.set["haListenPort"]
		if told || port {
			c.Store.HAListen = net.JoinHostPort(c.ListenIP, strconv.Itoa(c.HAListenPort))
		}
		c.Store.HAMaster = "" // RocketMQ's masters have it and wait
		return nil
	}
	if c.Gateway.Broker.BrokerID == 0 {
		return fmt.Errorf("%w: brokerRole is SLAVE, and brokerId is 0: above 0", ErrConfig)
	}
	if c.Gateway.Master == "" {
		c.Gateway.Master = brokerOf(c.Store.HAMaster)
	}
	return nil
}

// brokerOf derives the address of a master's broker from that of its replication port.
func brokerOf(replication string) string {
	host, port, err := net.SplitHostPort(replication)
	number, bad := strconv.Atoi(port)
	if err != nil || bad != nil || number < 2 {
		return ""
	}
	return net.JoinHostPort(host, strconv.Itoa(number-1))
}
