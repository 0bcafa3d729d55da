package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
)

// ErrCertificates: the files of certificates and keys can't be used; the message says which and why.
var ErrCertificates = errors.New("bad certificates")

// ClientAuth says what a client has to show: RocketMQ's tls.server.need.client.auth.
type ClientAuth string

// What a client has to show.
const (
	ClientAuthNone     ClientAuth = "none"
	ClientAuthOptional ClientAuth = "optional" // a certificate, if it shows one, must be signed by Files.Trust
	ClientAuthRequire  ClientAuth = "require"
)

// Files are the files of a server, in PEM. Names in parentheses are RocketMQ's options.
type Files struct {
	Cert  string // chain of the server (tls.server.certPath); empty: the node makes a certificate of its own
	Key   string // its key, not encrypted (tls.server.keyPath)
	Trust string // who signs the certificates of clients (tls.server.trustCertPath)

	ClientAuth ClientAuth // tls.server.need.client.auth; empty: none
}

// names lists what there is to read.
func (f Files) names() []string {
	var names []string
	for _, name := range []string{f.Cert, f.Key, f.Trust} {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}

// load makes a configuration from the files.
func (f Files) load(disk vfs.Disk, own *tls.Certificate) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	switch {
	case f.Cert == "" && f.Key == "":
		c.Certificates = []tls.Certificate{*own}
	case f.Cert == "" || f.Key == "":
		return nil, fmt.Errorf("%w: certificate and key go together: %q and %q", ErrCertificates, f.Cert, f.Key)
	default:
		cert, err := f.pair(disk)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{cert}
	}
	return c, f.clients(disk, c)
}

func (f Files) pair(disk vfs.Disk) (tls.Certificate, error) {
	cert, err := metadata.ReadText(disk, f.Cert)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%w: %w", ErrCertificates, err)
	}
	key, err := metadata.ReadText(disk, f.Key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%w: %w", ErrCertificates, err)
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return pair, fmt.Errorf("%w: %s and %s: %w", ErrCertificates, f.Cert, f.Key, err)
	}
	return pair, nil
}

func (f Files) clients(disk vfs.Disk, c *tls.Config) error {
	switch f.ClientAuth {
	case "", ClientAuthNone:
		return nil
	case ClientAuthOptional:
		c.ClientAuth = tls.VerifyClientCertIfGiven
	case ClientAuthRequire:
		c.ClientAuth = tls.RequireAndVerifyClientCert
	default:
		return fmt.Errorf("%w: client authentication %q: none, optional or require", ErrCertificates, f.ClientAuth)
	}
	if f.Trust == "" {
		if f.ClientAuth == ClientAuthOptional {
			c.ClientAuth = tls.RequestClientCert
			return nil
		}
		return fmt.Errorf("%w: clients must show certificates, but nobody is named who signs them", ErrCertificates)
	}
	trust, err := metadata.ReadText(disk, f.Trust)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrCertificates, err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(trust) {
		return fmt.Errorf("%w: %s has no certificate", ErrCertificates, f.Trust)
	}
	return nil
}

// ownYears is how long a certificate of our own is good.
const ownYears = 10

// selfSigned makes a certificate that nobody has signed: it encrypts, and proves nothing.
func selfSigned(now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()), Subject: pkix.Name{CommonName: "actormq"}, DNSNames: []string{"localhost"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(ownYears, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}
