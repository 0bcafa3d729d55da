package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
)

// renewed are credentials that are asked for anew with each connection.
type renewed struct {
	credentials.TransportCredentials
	ask func() (server, client *tls.Config)
}

func (h *Host) credentials() credentials.TransportCredentials {
	if h.cfg.TLS == nil {
		return insecure.NewCredentials()
	}
	_, client := h.cfg.TLS()
	return renewed{credentials.NewTLS(client), h.cfg.TLS}
}

// ServerHandshake implements credentials.TransportCredentials.
func (r renewed) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	server, _ := r.ask()
	return credentials.NewTLS(server).ServerHandshake(raw)
}

// ClientHandshake implements credentials.TransportCredentials.
func (r renewed) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	_, client := r.ask()
	return credentials.NewTLS(client).ClientHandshake(ctx, authority, raw)
}

// Clone implements credentials.TransportCredentials.
func (r renewed) Clone() credentials.TransportCredentials { return r }

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
