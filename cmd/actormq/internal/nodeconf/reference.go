package nodeconf

import (
	"fmt"
	"slices"
	"strings"
)

// Key is what there is to know of one key.
type Key struct {
	Name    string `json:"key"`
	Default string `json:"default"`
	Help    string `json:"help"`
	Changes bool   `json:"changesAtRunTime"`
}

// Keys lists all keys.
func Keys() []Key {
	list := make([]Key, len(keys))
	for i, k := range keys {
		list[i] = Key{Name: k.name, Default: k.byDefault, Help: k.help, Changes: slices.Contains(changeable, k.name)}
	}
	return list
}

// Reference is the list of all keys as Markdown: docs/CONFIG.md.
func Reference() string {
	var b strings.Builder
	b.WriteString(`# Configuration

Every key of broker.conf, of ` + "`node --set key=value`" + ` and, as ` + "`ACTORMQ_<KEY>`" + `, of the environment. ` + "`actormq config keys`" + ` has written this page; a test
compares them. Keys that change while the node runs are set by ` + "`actormq config set`" + ` or ` + "`mqadmin updateBrokerConfig`" + `, until it ends. [OPTIONS](OPTIONS.md) has the tests of the store's.

| key | default | what | changes at run time |
|---|---|---|---|
`)
	for _, k := range Keys() {
		change := "–"
		if k.Changes {
			change = "yes"
		}
		value := "–"
		if k.Default != "" {
			value = "`" + k.Default + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k.Name, value, strings.ReplaceAll(k.Help, "|", `\|`), change)
	}
	b.WriteString("\nThese keys of RocketMQ are accepted and have no effect: `" + strings.Join(slices.Sorted(slices.Values(withoutEffect)), "`, `") + "`.\n")
	return b.String()
}
