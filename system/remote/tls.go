package remote

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
)

// Mutual makes the two configurations of a host whose peers show certificates, from PEM: its own chain and key, for both directions, and
// who signs those of its peers. Each certificate must name the address or the name that peers connect to.
func Mutual(cert, key, trust []byte) (server, client *tls.Config, err error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: certificate and key: %w", ErrConfig, err)
	}
	signers := x509.NewCertPool()
	if !signers.AppendCertsFromPEM(trust) {
		return nil, nil, fmt.Errorf("%w: nobody is named who signs certificates", ErrConfig)
	}
	server = &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: signers,
	}
	client = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: signers}
	return server, client, nil
}
