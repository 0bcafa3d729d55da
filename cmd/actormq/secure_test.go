package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
)

func TestCommandsWithTLSAndAnAccount(t *testing.T) {
	rules, secret := filepath.Join(t.TempDir(), "plain_acl.yml"), filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(rules, []byte(`accounts:
- {accessKey: DemoUser01, secretKey: DemoSecret01, defaultTopicPerm: PUB|SUB, defaultGroupPerm: SUB}
`), 0o600))
	require.NoError(t, os.WriteFile(secret, []byte("DemoSecret01\n"), 0o600))
	n := serve(t, "tls.server.mode=enforcing", "aclEnable=true", "aclFile="+rules)
	account := []string{"--namesrv", n.names, "--tls-insecure", "--access-key", "DemoUser01", "--secret-key", "@" + secret}
	stdout, _, err := run(append([]string{"produce", "--json", "--topic", "orders", "one tea"}, account...)...)
	require.NoError(t, err)
	n.await("orders", jsonLines[sentLine](t, stdout))
	stdout, _, err = run(append([]string{"consume", "--json", "--topic", "orders", "--group", "g"}, account...)...)
	require.NoError(t, err)
	require.Equal(t, []string{"one tea"}, bodies(t, jsonLines[tools.Line](t, stdout)))

	_, _, err = run("produce", "--namesrv", n.names, "--tls-insecure", "--topic", "orders", "x")
	require.ErrorContains(t, err, "were not sent")
	_, _, err = run("produce", "--namesrv", n.names, "--topic", "orders", "x")
	require.Error(t, err, "without TLS")
	_, _, err = run("produce", "--namesrv", n.names, "--tls", "--topic", "orders", "x")
	require.ErrorContains(t, err, "certificate", "nobody known has signed it")
	_, _, err = run("produce", "--namesrv", n.names, "--access-key", "DemoUser01", "--topic", "orders", "x")
	require.ErrorContains(t, err, "go together")
}
