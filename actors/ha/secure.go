package ha

import (
	"crypto/tls"
	"net"
)

// secured is a connection under TLS that is closed at once: a node that hangs takes no farewell, and holds nobody up.
type secured struct{ *tls.Conn }

// Close implements net.Conn.
func (c secured) Close() error { return c.NetConn().Close() }

// served is a connection to a leader as its group has it. The handshake is part of the greeting, and its time.
func (g *Group) served(conn net.Conn) net.Conn {
	if g == nil || g.TLS == nil {
		return conn
	}
	server, _ := g.TLS()
	return secured{tls.Server(conn, server)}
}

// dialled is the follower's side of it: the leader's certificate must name the host that was dialled.
func (g *Group) dialled(conn net.Conn, address string) net.Conn {
	if g == nil || g.TLS == nil {
		return conn
	}
	_, client := g.TLS()
	client = client.Clone()
	client.ServerName, _, _ = net.SplitHostPort(address) // it was dialled
	return secured{tls.Client(conn, client)}
}
