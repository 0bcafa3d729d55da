package messages

import (
	"net/netip"
	"strings"
)

// IsLoopback tells whether a host, by its address or as "localhost", is reached from its own machine only. A name that needs a look-up
// is not.
func IsLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && ip.Unmap().IsLoopback()
}
