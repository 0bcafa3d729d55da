//go:build amd64 || arm64

package consumequeue

import "github.com/actormq/actormq/messages"

// fetchHeads has the processor fetch the first head bytes, at most two cache lines, of what the units name in log, which begins at the
// physical offset from. It waits for nothing, looks at nothing, and asks for nothing outside of log.
func fetchHeads(units []Unit, log []byte, from messages.PhysicalOffset, head int) {
	if len(units) > 0 && head > 0 && len(log) >= head {
		prefetchHeads(&units[0], len(units), &log[0], len(log)-head+1, int64(from), head-1)
	}
}

// prefetchHeads asks for the lines of log at PhysicalOffset - from, and last bytes behind, where that is below room. The instruction never
// faults.
//
//go:noescape
func prefetchHeads(units *Unit, n int, log *byte, room int, from int64, last int)
