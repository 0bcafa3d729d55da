package nodeconf

import (
	"crypto/tls"
	"fmt"
	"os"
	"strings"

	"github.com/actormq/actormq/system/ext/bridge"
)

// Bridge is where topics are copied to. Its Config is complete after Finish; without name servers there is none.
type Bridge struct {
	bridge.Config
	SecretFile string // bridgeSecretKeyFile
	UseTLS     bool   // bridgeUseTLS
}

// On tells whether there is a bridge.
func (b *Bridge) On() bool { return len(b.Client.NameServers) > 0 }

// bridgeKeys are the keys of the bridge to another node or cluster.
var bridgeKeys = []keyDef{
	{"bridgeNamesrvAddr", "", "name servers of the node or RocketMQ cluster that topics are copied to, host:port with ; between them; empty: no bridge",
		nameServers(func(c *Config) *[]string { return &c.Bridge.Client.NameServers })},
	{"bridgeTarget", "", "what that side is called in property ACTORMQ_ORIGIN of the copies; needed with bridgeNamesrvAddr",
		text(func(c *Config) *string { return &c.Bridge.Target })},
	{"bridgeSide", "brokerName", "what this side is called there", text(func(c *Config) *string { return &c.Bridge.Side })},
	{"bridgeTopics", "", "topics to copy, with ; between them; empty: all, but for those of the broker and of consumer groups",
		names(func(c *Config) *[]string { return &c.Bridge.Topics })},
	{"bridgeKeepQueues", "false", "a message goes to the queue with its own number; the target needs as many",
		boolean(func(c *Config) *bool { return &c.Bridge.KeepQueues })},
	{"bridgeOwnOnly", "false", "copy only what another bridge has not copied here", boolean(func(c *Config) *bool { return &c.Bridge.OwnOnly })},
	{"bridgeSkipIllegal", "false", "leave out what the target refuses as illegal; false: the bridge waits for somebody to look",
		boolean(func(c *Config) *bool { return &c.Bridge.SkipIllegal })},
	{"bridgeUseTLS", "false", "connect with TLS; as with useTLS, who answers is not proved", boolean(func(c *Config) *bool { return &c.Bridge.UseTLS })},
	{"bridgeAccessKey", "", "account at the target, where it asks for one", text(func(c *Config) *string { return &c.Bridge.Client.AccessKey })},
	{"bridgeSecretKeyFile", "", "file with the secret of bridgeAccessKey", text(func(c *Config) *string { return &c.Bridge.SecretFile })},
}

// names are separated by semicolons.
func names(field func(*Config) *[]string) applier {
	return func(c *Config, value string) error {
		*field(c) = strings.FieldsFunc(value, func(r rune) bool { return r == ';' || r == ' ' })
		return nil
	}
}

// finishBridge derives what follows from the keys of the bridge, and checks them.
func (c *Config) finishBridge() error {
	b := &c.Bridge
	if !b.On() {
		if b.Target != "" || len(b.Topics) > 0 {
			return fmt.Errorf("%w: there are keys of a bridge, but bridgeNamesrvAddr is empty", ErrConfig)
		}
		return nil
	}
	if b.Side == "" {
		b.Side = c.Gateway.Broker.Defaults().BrokerName
	}
	if b.UseTLS {
		b.Client.TLS = InsecureTLS()
	}
	if b.SecretFile != "" {
		secret, err := os.ReadFile(b.SecretFile)
		if err != nil {
			return fmt.Errorf("%w: bridgeSecretKeyFile: %w", ErrConfig, err)
		}
		b.Client.SecretKey = strings.TrimRight(string(secret), "\r\n")
	}
	if (b.Client.AccessKey == "") != (b.Client.SecretKey == "") {
		return fmt.Errorf("%w: bridgeAccessKey and bridgeSecretKeyFile go together", ErrConfig)
	}
	if _, err := bridge.New(b.Config); err != nil {
		return fmt.Errorf("%w: bridgeSide, bridgeTarget, bridgeTopics: %w", ErrConfig, err)
	}
	return nil
}

// InsecureTLS is as RocketMQ's own: who it is that one connects to is not proved.
func InsecureTLS() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
}
