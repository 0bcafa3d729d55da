//go:build amd64 || arm64

package segments

// Fetch has the processor fetch what b lies in, one cache line after the other. It waits for nothing and looks at nothing: memory that b
// does not have any more is no fault.
func Fetch(b []byte) {
	if len(b) > 0 {
		prefetch(&b[0], len(b))
	}
}

// prefetch asks for the lines of n bytes, at least one.
//
//go:noescape
func prefetch(first *byte, n int)
