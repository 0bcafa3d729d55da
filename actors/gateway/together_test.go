//go:build linux && !race

package gateway_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/gateway"
)

// The answer to a request goes together with that to the next one, of which a part is here already, when the rest is there too.
func TestAnswersWaitForAFrameThatIsThere(t *testing.T) {
	first, rest, second, seen := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan struct{})
	g := start(t, gateway.Options{}, gateway.Routes{
		codeEcho: {Handle: func(r *gateway.Request) {
			close(first)
			<-rest
			r.OK(nil)
		}},
		codeFence: {Handle: func(r *gateway.Request) {
			close(second)
			<-seen
			r.OK(nil)
		}},
	})
	p := dial(t, g)
	b, err := request(codeEcho, 1).Append(nil)
	require.NoError(t, err)
	b, err = request(codeFence, 2).Append(b)
	require.NoError(t, err)
	p.write(b[:len(b)-10])
	arrives(t, first)
	p.write(b[len(b)-10:])
	close(rest)
	arrives(t, second)
	p.silent()
	close(seen)
	require.Equal(t, int32(1), p.read().Opaque)
	require.Equal(t, int32(2), p.read().Opaque)
}
