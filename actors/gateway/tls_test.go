package gateway_test

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/gateway"
)

func secured(mode gateway.TLSMode) (gateway.Options, gateway.Service) {
	return gateway.Options{TLSMode: mode, HandshakeTimeout: 100 * time.Millisecond},
		gateway.Service{TLS: &tls.Config{MinVersion: tls.VersionTLS12}}
}

func echoing() gateway.Routes {
	return gateway.Routes{1: {Handle: func(r *gateway.Request) { r.OK(nil) }}}
}

func TestAHandshakeThatDoesNotGoOnIsCutOff(t *testing.T) {
	opt, service := secured(gateway.TLSPermissive)
	g := serve(t, opt, service, echoing())
	for _, begun := range [][]byte{{0x16}, {0x16, 3, 1, 2, 0, 1}} {
		p := dial(t, g)
		p.write(begun)
		p.gone()
	}
	p := dial(t, g)
	p.send(request(1, 1))
	require.EqualValues(t, 1, p.read().Opaque, "frames are served beside it")
}

func TestHandshakesTakeTurns(t *testing.T) {
	opt, service := secured(gateway.TLSPermissive)
	opt.MaxHandshakes = 1
	g := serve(t, opt, service, echoing())
	for range 5 {
		p := dial(t, g)
		p.write([]byte{0x16})
		p.t = t
		defer p.gone() // each after its own deadline, none for ever
	}
}

// mute sends and hears nothing.
type mute struct{ net.Conn }

func (mute) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestHandshakesThatDoNotGoOnHoldNobodyUp: peers that begin TLS and fall silent, at any point of it, do not keep others from it.
func TestHandshakesThatDoNotGoOnHoldNobodyUp(t *testing.T) {
	known := httptest.NewTLSServer(nil)
	known.Close()
	opt, service := secured(gateway.TLSEnforcing)
	opt.MaxHandshakes, opt.HandshakeTimeout, service.TLS.Certificates = 1, time.Hour, known.TLS.Certificates
	g := serve(t, opt, service, echoing())
	client := &tls.Config{InsecureSkipVerify: true} //nolint:gosec // any certificate will do
	for _, begin := range []func(*peer){
		func(p *peer) { p.write([]byte{0x16}) },
		func(p *peer) { p.write([]byte{0x16, 3, 1, 2, 0, 1}) },
		func(p *peer) { require.Error(t, tls.Client(mute{p.sock}, client).Handshake()) },
	} {
		begin(dial(t, g))
		p := dial(t, g)
		wire := tls.Client(p.sock, client)
		require.NoError(t, wire.SetDeadline(time.Now().Add(patience)))
		require.NoError(t, wire.Handshake())
		p.sock, p.in = wire, bufio.NewReader(wire)
		p.send(request(1, 1))
		require.EqualValues(t, 1, p.read().Opaque)
	}
}

func TestWithoutTLSAHelloIsNoFrame(t *testing.T) {
	g := start(t, gateway.Options{}, echoing())
	p := dial(t, g)
	p.write([]byte{0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3})
	p.gone()
}

func TestTLSNeedsACertificate(t *testing.T) {
	_, err := gateway.Start(nil, gateway.Options{TLSMode: gateway.TLSEnforcing}, gateway.Service{})
	require.ErrorIs(t, err, gateway.ErrOptions)
	require.ErrorContains(t, err, "certificate")
}
