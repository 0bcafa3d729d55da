package nodeconf

import (
	"fmt"
	"slices"
	"strings"
)

// Reference is the list of all keys as Markdown: docs/CONFIG.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration

Every key of broker.conf, of ` + "`node --set key=value`" + ` and, as ` + "`ACTORMQ_<KEY>`" + `, of the environment. ` + "`actormq config keys`" + ` has written this page; a test
compares them. Keys that change while the node runs are set by ` + "`mqadmin updateBrokerConfig`" + `, until it ends. [OPTIONS](OPTIONS.md) has the tests of the store's.

| key | default | what | changes at run time |
|---|---|---|---|
`)
	for _, k := range keys {
		change := "–"
		if slices.Contains(changeable, k.name) {
			change = "yes"
		}
		value := "–"
		if k.byDefault != "" {
			value = "`" + k.byDefault + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.name, value, strings.ReplaceAll(k.help, "|", `\|`), change)
	}
	b.WriteString("\nThese keys of RocketMQ are accepted and have no effect: `" + strings.Join(slices.Sorted(slices.Values(withoutEffect)), "`, `") + "`.\n")
	return b.String()
}
