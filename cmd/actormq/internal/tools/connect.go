package tools

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/system/client"
)

// ConnectFlags say how a command reaches a cluster.
type ConnectFlags struct {
	namesrv              string
	timeout              time.Duration
	secure               TLSFlags
	accessKey, secretKey string
}

// TLSFlags say whether and how a command speaks TLS.
type TLSFlags struct {
	tls, insecure bool
	ca, cert, key string
}

// Bind adds the flags to a command.
func (f *TLSFlags) Bind(c *cobra.Command) {
	c.Flags().BoolVar(&f.tls, "tls", false, "connect with TLS")
	c.Flags().StringVar(&f.ca, "tls-ca", "", "file of those who sign the servers' certificates, PEM; default: those of the system")
	c.Flags().BoolVar(&f.insecure, "tls-insecure", false, "take any certificate, as RocketMQ's clients do")
	c.Flags().StringVar(&f.cert, "tls-cert", "", "file of a certificate to show, PEM")
	c.Flags().StringVar(&f.key, "tls-key", "", "file of its key, PEM")
}

// Bind adds the flags to a command.
func (f *ConnectFlags) Bind(c *cobra.Command, timeout time.Duration) {
	c.Flags().StringVar(&f.namesrv, "namesrv", "127.0.0.1:9876", "HOST:PORT of the name server, several with ; between them")
	c.Flags().DurationVar(&f.timeout, "timeout", timeout, "how long to wait for a connection, and for an answer")
	f.secure.Bind(c)
	c.Flags().StringVar(&f.accessKey, "access-key", "", "account that signs the requests")
	c.Flags().StringVar(&f.secretKey, "secret-key", "", "its secret key, or @FILE that holds it")
}

// Options makes the flags into those of a client.
func (f *ConnectFlags) Options() (client.Options, error) {
	opt := client.Options{NameServers: NameServers(f.namesrv), Timeout: f.timeout, AccessKey: f.accessKey, SecretKey: f.secretKey}
	if f.timeout <= 0 {
		return opt, fmt.Errorf("--timeout %v: want more than 0", f.timeout)
	}
	if (f.accessKey == "") != (f.secretKey == "") {
		return opt, fmt.Errorf("--access-key and --secret-key go together")
	}
	if file, ok := strings.CutPrefix(f.secretKey, "@"); ok {
		text, err := os.ReadFile(file)
		if err != nil {
			return opt, fmt.Errorf("--secret-key: %w", err)
		}
		opt.SecretKey = strings.TrimSpace(string(text))
	}
	var err error
	opt.TLS, err = f.secure.Config()
	return opt, err
}

// Config is what the flags say, nil without TLS.
func (f *TLSFlags) Config() (*tls.Config, error) {
	if !f.tls && f.ca == "" && f.cert == "" && !f.insecure {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: f.insecure}
	if f.ca != "" {
		text, err := os.ReadFile(f.ca)
		if err != nil {
			return nil, fmt.Errorf("--tls-ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("--tls-ca: %s has no certificate", f.ca)
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("--tls-cert, --tls-key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// NameServers takes the list of RocketMQ's clients apart.
func NameServers(list string) []string {
	return slices.DeleteFunc(strings.Split(list, ";"), func(s string) bool { return strings.TrimSpace(s) == "" })
}
