package gateway_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
)

// Requests that were read together have one time, which is no older than what was waited for between them.
func TestRequestsThatAreReadTogetherHaveArrivedTogether(t *testing.T) {
	const n, ordered, pauses = 60, 5, 8
	entered, written, all := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var at, over [n]time.Time
	handle := func(r *gateway.Request) {
		at[r.Opaque] = r.At
		switch r.Opaque {
		case 0:
			close(entered) // alone
			<-written      // all the others lie in the socket then
		case pauses:
			r.Pause()
		}
		over[r.Opaque] = time.Now()
		r.OK(nil)
		if r.Opaque == n-1 {
			close(all)
		}
	}
	g := start(t, gateway.Options{}, gateway.Routes{codeEcho: {Handle: handle}, codeOrdered: {Handle: handle, Lane: gateway.Ordered}})
	p := dial(t, g)
	p.send(request(codeEcho, 0))
	arrives(t, entered)
	var rest []*remoting.Command
	for i := int32(1); i < n; i++ {
		code := codeEcho
		if i == ordered {
			code = codeOrdered
		}
		rest = append(rest, request(code, i))
	}
	p.send(rest...)
	close(written)
	arrives(t, all)
	require.Equal(t, at[1], at[ordered-1], "together")
	require.Equal(t, at[ordered+1], at[pauses], "together")
	require.Equal(t, at[pauses+1], at[pauses+16], "together")
	for _, i := range []int{0, ordered, pauses, pauses + 16, pauses + 32} {
		require.False(t, at[i+1].Before(over[i]), "what comes behind %d has its time from before it", i)
	}
}
