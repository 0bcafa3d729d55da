// The library sets the global logger of gRPC at each start, which the race detector sees beside busy hosts.

//go:build !race

package main

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system/gateway/certs"
	"github.com/actormq/actormq/system/remote"
	"github.com/actormq/actormq/system/remote/client"
	"github.com/actormq/actormq/testkit/fixture"
)

func read(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	return b
}

// Time for a put that is answered, on a busy machine, and for one that no node ever answers.
const (
	answered = time.Minute
	never    = time.Second
)

// putOnce puts one message by a client of its own, within a time.
func putOnce(t *testing.T, opt client.Options, within time.Duration) error {
	t.Helper()
	opt.Logger = zerolog.Nop()
	c, err := client.Dial(opt)
	require.NoError(t, err)
	defer func() { require.NoError(t, c.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	_, err = c.Put(ctx, &messages.Message{Topic: "orders", QueueID: -1, Body: []byte("one tea")})
	return err
}

func TestANodeServesActorsOfOtherProcesses(t *testing.T) {
	n := serve(t, "remoteListen=127.0.0.1:0")
	require.Contains(t, n.ready(), " remote="+n.remote.Address()+" ")
	require.NoError(t, putOnce(t, client.Options{Resolver: client.Static{n.remote.Address()}}, answered))
	out, _, err := run("topic", "list", "--namesrv", n.names)
	require.NoError(t, err)
	require.Contains(t, out, "orders", "the topic is there for everybody")
}

func TestActorsOfOtherProcessesShowCertificates(t *testing.T) {
	cert, key := fixture.Certificate(t)
	n := serve(t, "remoteListen=127.0.0.1:0", "remoteCertPath="+cert, "remoteKeyPath="+key, "remoteTrustCertPath="+cert)
	opt := client.Options{Resolver: client.Static{n.remote.Address()}}
	require.ErrorIs(t, putOnce(t, opt, never), client.ErrUnreachable, "one without")
	var err error
	opt.Server, opt.Client, err = remote.Mutual(read(t, cert), read(t, key), read(t, cert))
	require.NoError(t, err)
	require.NoError(t, putOnce(t, opt, answered))
	strange, itsKey := fixture.Certificate(t)
	opt.Server, opt.Client, err = remote.Mutual(read(t, strange), read(t, itsKey), read(t, cert))
	require.NoError(t, err)
	require.ErrorIs(t, putOnce(t, opt, never), client.ErrUnreachable, "one that nobody here has signed")
	require.Positive(t, n.remote.Status().Refused)
}

func TestCertificatesOfTheRemotePortAreReadAgain(t *testing.T) {
	cert, key := fixture.Certificate(t)
	n := serve(t, "remoteListen=127.0.0.1:0", "remoteCertPath="+cert, "remoteKeyPath="+key, "remoteTrustCertPath="+cert)
	newCert, newKey := fixture.Certificate(t)
	for from, to := range map[string]string{newCert: cert, newKey: key} {
		require.NoError(t, os.WriteFile(to, read(t, from), 0o600))
	}
	opt := client.Options{Resolver: client.Static{n.remote.Address()}}
	var err error
	opt.Server, opt.Client, err = remote.Mutual(read(t, newCert), read(t, newKey), read(t, newCert))
	require.NoError(t, err)
	require.NoError(t, putOnce(t, opt, answered), "in both directions")
}

func TestARemotePortThatCanNotBeOpened(t *testing.T) {
	cert, key := fixture.Certificate(t)
	for _, set := range [][]string{
		{"remoteListen=0.0.0.0:0"}, {"remoteListen=127.0.0.1:0", "remoteCertPath=" + cert},
		{"remoteListen=127.0.0.1:0", "remoteCertPath=" + cert, "remoteKeyPath=" + cert, "remoteTrustCertPath=" + cert},
		{"remoteListen=127.0.0.1:0", "remoteCertPath=" + cert, "remoteKeyPath=" + key, "remoteTrustCertPath=" + key},
		{"remoteListen=127.0.0.1:0", "remoteCertPath=nowhere", "remoteKeyPath=" + key, "remoteTrustCertPath=" + key},
	} {
		f := nodeFlags{storeDir: t.TempDir(), listen: freePort(t), set: append(set, "namesrvListen=", "vipChannel=false", "adminListen=",
			"mappedFileSizeCommitLog=1048576")}
		conf, err := f.configuration(newNodeCommand())
		require.NoError(t, err)
		_, err = startNode(conf, zerolog.Nop())
		require.Error(t, err, set)
		require.True(t, errors.Is(err, nodeconf.ErrConfig) || errors.Is(err, remote.ErrConfig) || errors.Is(err, certs.ErrCertificates), "%v: %v", set, err)
	}
}
