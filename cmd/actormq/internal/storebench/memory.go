package storebench

import (
	"os"
	"strconv"
	"strings"
)

// usage is resident memory in MB; zero where the operating system has no /proc.
type usage struct{ all, anonymous, file float64 }

func memory() usage {
	var u usage
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return u
	}
	fields := map[string]*float64{"VmRSS": &u.all, "RssAnon": &u.anonymous, "RssFile": &u.file}
	for line := range strings.Lines(string(data)) {
		name, rest, _ := strings.Cut(line, ":")
		if to := fields[name]; to != nil {
			kib, _ := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 64)
			*to = kib / 1024
		}
	}
	return u
}
