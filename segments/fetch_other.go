//go:build !amd64 && !arm64

package segments

// Fetch does nothing here: whoever looks at the bytes waits for them.
func Fetch([]byte) {}
