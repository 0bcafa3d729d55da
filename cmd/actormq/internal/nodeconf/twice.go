package nodeconf

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/actormq/actormq/messages"
)

// Odd says what is odd about the configuration: each is a warning at start.
func (c *Config) Odd() []string { return slices.Concat(c.twice, c.Reach(), c.ownNames()) }

// ownNames tells when the node is to join its own name server, which refuses the broker that it has anyhow.
func (c *Config) ownNames() (odd []string) {
	_, own, err := net.SplitHostPort(c.NameServer)
	for _, names := range c.Gateway.Join.NameServers {
		host, port, bad := net.SplitHostPort(names)
		if err == nil && bad == nil && port == own && (messages.IsLoopback(host) || names == c.NameServer) {
			odd = append(odd, fmt.Sprintf("namesrvAddr names %s, which is the node's own name server: leave it out there, or run none with namesrvListen=", names))
		}
	}
	return odd
}

// twice names the lines of a properties file that set a key again. The last one counts, as in RocketMQ.
func twice(file, text string) (odd []string) {
	first := map[string]int{}
	eachLine(text, func(number int, line string) {
		p, err := loader.LoadBytes([]byte(line))
		if err != nil {
			return
		}
		for _, key := range p.Keys() {
			if before := first[key]; before > 0 {
				odd = append(odd, fmt.Sprintf("%s:%d sets %s again: the value of line %d does not count", file, number, key, before))
			}
			first[key] = number
		}
	})
	return odd
}

// eachLine calls fn for each line that is no comment, with those that it goes on in, and with the number of its first.
func eachLine(text string, fn func(number int, line string)) {
	whole, begun := "", 0
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimRight(line, "\r")
		if begun == 0 {
			if t := strings.TrimLeft(line, " \t\f"); t == "" || t[0] == '#' || t[0] == '!' {
				continue
			}
			begun = i + 1
		}
		whole += line + "\n"
		if escapes := len(line) - len(strings.TrimRight(line, "\\")); escapes%2 == 1 {
			continue
		}
		fn(begun, whole)
		whole, begun = "", 0
	}
	if begun > 0 {
		fn(begun, whole)
	}
}
