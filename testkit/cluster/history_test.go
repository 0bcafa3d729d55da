package cluster

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the checker is for has to be found by it.
func TestHistoriesThatAreNotLinearizableAreFound(t *testing.T) {
	const n = 3*piece + 7
	all := map[place]string{}
	good := func() *history {
		h := &history{}
		for i := range int64(n) {
			body := fmt.Sprint("m", i)
			all[place{1, i}] = body
			h.calls = append(h.calls, call{body: body, queue: 1, called: 10 * i, returned: 10*i + 25}, // two overlap with the next ones
				call{queue: 1, from: i / 2, to: i + 1, called: 10*i + 5, returned: 10*i + 50})
		}
		return h
	}
	require.NoError(t, good().Linearizable(all))
	for name, bad := range map[string]func(h *history){
		"read before it was sent":          func(h *history) { h.calls[21].called, h.calls[21].returned = 0, 99 },
		"read long before it was sent":     func(h *history) { h.calls[2*n-1].called, h.calls[2*n-1].returned = 0, 1 },
		"acknowledged behind a later one":  func(h *history) { h.calls[20].called, h.calls[20].returned = 136, 140 },
		"acknowledged far behind a later":  func(h *history) { h.calls[0].called, h.calls[0].returned = 10*n, 11*n },
		"the last one, long before others": func(h *history) { h.calls[2*n-2].called, h.calls[2*n-2].returned = 0, 1 },
	} {
		h := good()
		bad(h)
		require.Error(t, h.Linearizable(all), name)
	}
	unknown := good()
	unknown.calls[20].returned = never
	unknown.calls = append(unknown.calls, call{body: "refused, and not there", called: 1, returned: never})
	require.NoError(t, unknown.Linearizable(all))
	delete(all, place{1, 9})
	require.ErrorContains(t, unknown.Linearizable(all), "nothing at 9")
}
