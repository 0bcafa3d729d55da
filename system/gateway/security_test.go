package gateway_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/certs"
)

const accounts = `# the operator's own words
accounts:
- accessKey: DemoUser01 # sends
  secretKey: DemoSecret01
  topicPerms: [orders=PUB]
- accessKey: DemoAdmin01
  secretKey: DemoSecret99
  admin: true
`

// guarded runs a node with access control.
func guarded(t *testing.T) *world {
	t.Helper()
	return run(t, func(c *gateway.Config) {
		c.ACLFile = "conf/plain_acl.yml"
		require.NoError(t, metadata.WriteText(c.Disk, c.ACLFile, []byte(accounts)))
	})
}

func signedBy(user, secret string, code int, pairs ...string) *remoting.Command {
	c := req(code, pairs...)
	c.Sign(user, secret)
	return c
}

func asAdmin(code int, pairs ...string) *remoting.Command {
	return signedBy("DemoAdmin01", "DemoSecret99", code, pairs...)
}

func TestAccessControlGuardsEveryPort(t *testing.T) {
	w := guarded(t)
	send := func() *remoting.Command { return req(remoting.RequestSendMessageV2, "b", "orders") }
	for _, port := range []string{"broker", "vip"} {
		c := w.dial(port)
		a := c.ask(send())
		require.Equal(t, remoting.ResponseSystemError, a.Code)
		require.Contains(t, a.Remark, "AclException: No accessKey is configured")
		a = c.ask(signedBy("DemoUser01", "DemoSecret01", remoting.RequestSendMessageV2, "b", "orders"))
		require.NotContains(t, a.Remark, "AclException")
		oneWay := send()
		oneWay.Flag |= remoting.FlagOneWay
		c.send(oneWay)
		require.Equal(t, remoting.ResponseSuccess, c.ask(asAdmin(remoting.RequestGetBrokerRuntimeInfo)).Code, "and nothing before it")
	}
	names := w.dial("namesrv")
	require.NotContains(t, names.ask(req(remoting.RequestGetRouteInfoByTopic, "topic", "orders")).Remark, "AclException")
	require.Contains(t, names.ask(req(remoting.RequestWipeWritePermOfBroker, "brokerName", "broker-a")).Remark, "AclException")
	require.Equal(t, remoting.ResponseSuccess, names.ask(asAdmin(remoting.RequestWipeWritePermOfBroker, "brokerName", "broker-a")).Code)
}

// L98: who may not do it changes nothing, and no request names a file.
func TestAccountsAreChangedByAdministrators(t *testing.T) {
	w := guarded(t)
	c := w.dial("broker")
	update := []string{"accessKey", "DemoUser02", "secretKey", "DemoSecret02", "topicPerms", "orders=SUB,more=PUB|SUB", "admin", "false"}
	a := c.ask(signedBy("DemoUser01", "DemoSecret01", remoting.RequestUpdateAndCreateACLConfig, update...))
	require.Contains(t, a.Remark, "Need admin permission")
	require.Equal(t, remoting.ResponseSuccess, c.ask(asAdmin(remoting.RequestUpdateAndCreateACLConfig, update...)).Code)
	a = c.ask(signedBy("DemoUser02", "DemoSecret02", remoting.RequestSendMessageV2, "b", "orders"))
	require.Contains(t, a.Remark, "No default permission for topic:orders")
	text, err := metadata.ReadText(w.disk, "conf/plain_acl.yml")
	require.NoError(t, err)
	require.Contains(t, string(text), "# the operator's own words", "L46: what was not changed stays")
	require.Contains(t, string(text), "# sends")

	a = c.ask(asAdmin(remoting.RequestUpdateAndCreateACLConfig, "accessKey", "DemoUser03", "secretKey", "short"))
	require.Equal(t, remoting.ResponseUpdateAndCreateACLConfigFailed, a.Code)
	a = c.ask(asAdmin(remoting.RequestUpdateGlobalWhiteAddrsConfig, "globalWhiteAddrs", "10.0.0.*", "aclFileFullPath", "/etc/passwd"))
	require.Equal(t, remoting.ResponseUpdateGlobalWhiteAddrsConfigFailed, a.Code)
	a = c.ask(asAdmin(remoting.RequestUpdateGlobalWhiteAddrsConfig, "globalWhiteAddrs", "10.0.0.*,10.0.1.{1,2}"))
	require.Equal(t, remoting.ResponseSuccess, a.Code, a.Remark)
	a = c.ask(asAdmin(remoting.RequestGetBrokerClusterACLConfig))
	var all remoting.ACLConfig
	require.NoError(t, a.DecodeBody(&all))
	require.Equal(t, []string{"10.0.0.*", "10.0.1.{1,2}"}, all.GlobalWhiteAddrs)
	require.Len(t, all.PlainAccessConfigs, 3)
	a = c.ask(asAdmin(remoting.RequestGetBrokerClusterACLInfo))
	require.Contains(t, ext(a, "version"), `"counter":2`)
	require.Contains(t, ext(a, "allAclFileVersion"), "conf/plain_acl.yml")
	require.Equal(t, remoting.ResponseDeleteACLConfigFailed, c.ask(asAdmin(remoting.RequestDeleteACLConfig, "accessKey", "Nobody")).Code)
	require.Equal(t, remoting.ResponseSuccess, c.ask(asAdmin(remoting.RequestDeleteACLConfig, "accessKey", "DemoUser02")).Code)
	require.Contains(t, c.ask(signedBy("DemoUser02", "DemoSecret02", remoting.RequestGetMaxOffset)).Remark, "No acl config for DemoUser02")
}

func TestAccessRulesAreReadAgainAndABadEditChangesNothing(t *testing.T) {
	w := guarded(t)
	c := w.dial("broker")
	edit := func(text string) { require.NoError(t, metadata.WriteText(w.disk, "conf/plain_acl.yml", []byte(text))) }
	answer := func() string {
		return c.ask(signedBy("Another01", "DemoSecret03", remoting.RequestGetMaxOffset, "topic", "x", "queueId", "0")).Remark
	}
	edit("accounts: [{accessKey: Another01, secretKey: DemoSecret03, topicPermz: [a=PUB]}]")
	require.Contains(t, answer(), "No acl config for Another01")
	edit(accounts + "- accessKey: Another01\n  secretKey: DemoSecret03\n")
	w.eventually(func() bool { return answer() == "" })
	edit("accounts: {")
	require.Contains(t, c.ask(asAdmin(remoting.RequestDeleteACLConfig, "accessKey", "Another01")).Remark, "bad access rules")
	require.Empty(t, answer(), "the rules before stay")
}

func TestAccessControlWithoutRulesDoesNotStart(t *testing.T) {
	_, err := gateway.Start(actorSystem().Root, gateway.Config{
		Store: run(t).store, Disk: run(t).disk, ConfigDir: "other", Listen: "127.0.0.1:0", ACLFile: "conf/plain_acl.yml",
	})
	require.ErrorContains(t, err, "plain_acl.yml")
}

// pair makes a certificate for a name, signed by itself, and its key in PEM.
func pair(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	require.NoError(t, err)
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})
}

// dialTLS connects with TLS; the handshake must succeed.
func (w *world) dialTLS(port string, cfg *tls.Config) *client {
	w.t.Helper()
	sock, err := tls.Dial("tcp", w.node.Addr(port).String(), cfg)
	require.NoError(w.t, err)
	w.t.Cleanup(func() { _ = sock.Close() })
	return &client{t: w.t, sock: sock, in: bufio.NewReader(sock)}
}

func TestTLSOnEveryPortAndPlainBesideIt(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.TLSMode = edge.TLSPermissive })
	w.topic("orders", 2)
	trusting := &tls.Config{InsecureSkipVerify: true} // as RocketMQ's clients by default
	for _, port := range []string{"broker", "vip"} {
		for _, c := range []*client{w.dialTLS(port, trusting), w.dial(port)} {
			r := req(remoting.RequestSendMessageV2, "a", "pg", "b", "orders", "c", "TBW102", "d", "4", "e", "0", "f", "0", "g", "1", "h", "0", "i", "", "j", "0", "k", "false")
			r.Body = make([]byte, 300<<10)
			require.Equal(t, remoting.ResponseSuccess, c.ask(r).Code)
		}
	}
	require.Equal(t, remoting.ResponseSuccess, w.dialTLS("namesrv", trusting).ask(req(remoting.RequestGetRouteInfoByTopic, "topic", "orders")).Code)
}

func TestTLSEnforcedTakesNothingElse(t *testing.T) {
	w := run(t, func(c *gateway.Config) { c.TLSMode = edge.TLSEnforcing })
	plain := w.dial("namesrv")
	plain.send(req(remoting.RequestGetBrokerClusterInfo))
	plain.gone()
	w.dialTLS("namesrv", &tls.Config{InsecureSkipVerify: true}).ask(req(remoting.RequestGetBrokerClusterInfo))
}

func TestCertificatesAreReadAgainAndABadEditChangesNothing(t *testing.T) {
	w := run(t, func(c *gateway.Config) {
		c.TLSMode, c.TLSFiles = edge.TLSEnforcing, certs.Files{Cert: "conf/cert.pem", Key: "conf/key.pem"}
		cert, key := pair(t, "first.example")
		require.NoError(t, metadata.WriteText(c.Disk, "conf/cert.pem", cert))
		require.NoError(t, metadata.WriteText(c.Disk, "conf/key.pem", key))
	})
	shown := func() string {
		c := w.dialTLS("broker", &tls.Config{InsecureSkipVerify: true})
		return c.sock.(*tls.Conn).ConnectionState().PeerCertificates[0].DNSNames[0]
	}
	old := w.dialTLS("broker", &tls.Config{InsecureSkipVerify: true})
	require.Equal(t, "first.example", shown())
	cert, key := pair(t, "second.example")
	require.NoError(t, metadata.WriteText(w.disk, "conf/cert.pem", cert))
	require.Equal(t, "first.example", shown(), "the key is still that of the other one")
	require.NoError(t, metadata.WriteText(w.disk, "conf/key.pem", key))
	w.eventually(func() bool { return shown() == "second.example" })
	require.Equal(t, remoting.ResponseSuccess, old.ask(req(remoting.RequestGetBrokerRuntimeInfo)).Code, "who is connected stays")
}

func TestClientsMustShowACertificate(t *testing.T) {
	cert, key := pair(t, "client.example")
	w := run(t, func(c *gateway.Config) {
		c.TLSMode, c.TLSFiles = edge.TLSPermissive, certs.Files{Trust: "conf/ca.pem", ClientAuth: certs.ClientAuthRequire}
		require.NoError(t, metadata.WriteText(c.Disk, "conf/ca.pem", cert))
	})
	mine, err := tls.X509KeyPair(cert, key)
	require.NoError(t, err)
	good := w.dialTLS("broker", &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{mine}})
	require.Equal(t, remoting.ResponseSuccess, good.ask(req(remoting.RequestGetBrokerRuntimeInfo)).Code)
	sock, err := net.Dial("tcp", w.node.Addr("broker").String())
	require.NoError(t, err)
	defer sock.Close()
	bare := tls.Client(sock, &tls.Config{InsecureSkipVerify: true})
	require.NoError(t, sock.SetDeadline(time.Now().Add(patience)))
	if err := bare.Handshake(); err == nil { // TLS 1.3 tells it with the first read
		_, err = bare.Read(make([]byte, 1))
		require.ErrorContains(t, err, "certificate")
	}
}
