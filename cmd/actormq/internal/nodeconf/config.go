package nodeconf

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/magiconair/properties"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
)

// Config is the effective configuration of a node.
type Config struct {
	Store   system.Options
	Gateway gateway.Config

	ListenIP       string  // bindAddress; where the broker's ports listen
	ListenPort     int     // listenPort
	AdvertisedIP   string  // brokerIP1; address or name, as clients reach the broker
	AdvertisedPort int     // advertisedPort; the same of the port
	ReplicationIP  string  // brokerIP2; as replicas reach the broker
	HAListenPort   int     // haListenPort
	NameServer     string  // namesrvListen: host:port of the node's own name server, empty: none
	AdminListen    string  // adminListen: host:port, empty: none
	AdminAsked     bool    // it was set: without it the node does not start
	AdminPassFile  string  // adminPasswordFile; empty: no password
	ScrubRate      int64   // scrubBytesPerSecond; 0: there is no scrub
	Timed          bool    // timedMessages
	TraceFraction  float64 // traceFraction; 0: nothing is traced
	TraceEndpoint  string  // traceEndpoint
	VIPChannel     bool    // serve listenPort − 2 too
	NoTraceTopic   bool    // traceTopicEnable=false: the topic of traces is not made at the start

	Remote Remote
	Bridge Bridge

	UseTLS        bool   // useTLS: to other name servers
	ACL           bool   // aclEnable
	ACLFile       string // aclFile
	TLSConfigFile string // tls.config.file
	TLSOwn        bool   // tls.test.mode.enable

	traceTopic string // msgTraceTopicName

	set     map[string]setting // what was set, by key
	Ignored []string           // keys of RocketMQ that have no effect here
	twice   []string           // of a file that sets a key more than once
}

// setting is a value and where it came from.
type setting struct{ value, source string }

// ErrConfig: the configuration can't be used; the message lists every problem.
var ErrConfig = errors.New("bad configuration")

// Default returns the configuration of a node that is told nothing.
func Default() *Config {
	return &Config{
		Store:    system.Options{Dir: "store"},
		ListenIP: "127.0.0.1", ListenPort: 10911, NameServer: "127.0.0.1:9876", VIPChannel: true, NoTraceTopic: true, TLSOwn: true, ScrubRate: 1 << 20,
		traceTopic: messages.TopicTrace, set: map[string]setting{},
		Gateway: gateway.Config{
			TLSMode: edge.TLSPermissive,
			Broker:  broker.Config{Policy: broker.Policy{SearchBoundary: messages.TimeNearest}},
		},
	}
}

// loader reads what a broker.conf holds.
var loader = properties.Loader{Encoding: properties.UTF8, DisableExpansion: true}

// Load reads a broker.conf.
func (c *Config) Load(file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("%w: read %s: %w", ErrConfig, file, err)
	}
	p, err := loader.LoadBytes(text)
	if err != nil {
		return fmt.Errorf("%w: read %s: %w", ErrConfig, file, err)
	}
	c.twice = append(c.twice, twice(file, string(text))...)
	var bad []error
	for _, key := range p.Keys() {
		value, _ := p.Get(key)
		if err := c.Set(key, value, file); err != nil {
			bad = append(bad, err)
		}
	}
	return errors.Join(bad...)
}

// EnvironmentPrefix stands before a key in capitals in the name of an environment variable.
const EnvironmentPrefix = "ACTORMQ_"

// LoadEnvironment takes the keys that are set in an environment (os.Environ).
func (c *Config) LoadEnvironment(environ []string) error {
	var bad []error
	for _, pair := range environ {
		name, value, _ := strings.Cut(pair, "=")
		upper, ok := strings.CutPrefix(name, EnvironmentPrefix)
		if !ok {
			continue
		}
		key := ""
		for _, k := range keys {
			if strings.EqualFold(strings.ReplaceAll(k.name, ".", "_"), upper) {
				key = k.name
			}
		}
		if key == "" {
			bad = append(bad, unknown(upper, name))
			continue
		}
		if err := c.Set(key, value, name); err != nil {
			bad = append(bad, err)
		}
	}
	return errors.Join(bad...)
}

// Set sets one key; source says where it came from in messages.
func (c *Config) Set(key, value, source string) error {
	value = strings.TrimSpace(value)
	if i := slices.IndexFunc(keys, func(k keyDef) bool { return k.name == key }); i >= 0 {
		if err := keys[i].apply(c, value); err != nil {
			if strings.HasSuffix(key, "Password") {
				value = "..."
			}
			return fmt.Errorf("%w: %s=%s (%s): %w", ErrConfig, key, value, source, err)
		}
		c.set[key] = setting{value: value, source: source}
		return nil
	}
	if only, is := fixed[key]; is {
		if value == only || value == "null" && only == "" { // as getBrokerConfig of RocketMQ shows it
			return nil
		}
		return fmt.Errorf("%w: %s=%s (%s): only %q is supported", ErrConfig, key, value, source, only)
	}
	if slices.Contains(withoutEffect, key) {
		c.Ignored = append(c.Ignored, key)
		return nil
	}
	return unknown(key, source)
}

func unknown(key, source string) error {
	hint := "actormq config keys lists all"
	if near := nearest(key); near != "" {
		hint = "did you mean " + near + "?"
	}
	return fmt.Errorf("%w: unknown key %s (%s), %s", ErrConfig, key, source, hint)
}

// nearest is the known key that differs least, "" when none is near: more than a third of its letters would have to change.
func nearest(key string) string {
	best, least := "", len(key)/3+1
	for _, k := range keys {
		if d := distance(strings.ToLower(key), strings.ToLower(k.name)); d < least {
			best, least = k.name, d
		}
	}
	return best
}

// distance counts the letters to insert, remove or replace between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := before
			if a[i] != b[j] {
				replace++
			}
			before = row[j+1]
			row[j+1] = min(replace, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

// Finish derives what follows from the keys, and checks the whole.
func (c *Config) Finish() error {
	if err := errors.Join(c.finishReplication(), c.finishAddresses()); err != nil {
		return err
	}
	if !filepath.IsAbs(c.Store.Dir) {
		dir, err := filepath.Abs(c.Store.Dir)
		if err != nil {
			return fmt.Errorf("%w: storePathRootDir: %w", ErrConfig, err)
		}
		c.Store.Dir = dir
	}
	if err := errors.Join(c.finishSecurity(), c.finishBridge()); err != nil {
		return err
	}
	if !c.NoTraceTopic {
		c.Gateway.TraceTopic = c.traceTopic
	}
	c.Gateway.Disk = vfs.New()
	return c.Store.Defaults().Validate()
}

// firstAddress is an address of this machine that others may reach, or loopback.
func firstAddress() string {
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

// Print writes every known key with its value and where it came from, one a line.
func (c *Config) Print() string {
	var b strings.Builder
	for _, k := range keys {
		s, ok := c.set[k.name]
		if !ok {
			s = setting{value: k.byDefault, source: "default"}
		}
		fmt.Fprintf(&b, "%s=%s\t# %s; %s\n", k.name, s.value, s.source, k.help)
	}
	return b.String()
}

// Effective returns the value of every known key, and of those that cannot be anything else here.
func (c *Config) Effective() map[string]string {
	all := maps.Clone(fixed)
	for _, k := range keys {
		all[k.name] = k.byDefault
		if s, ok := c.set[k.name]; ok {
			all[k.name] = s.value
		}
	}
	all["storePathRootDir"], all["storePathCommitLog"] = c.Store.Dir, c.Store.Defaults().CommitLogDir
	return all
}
