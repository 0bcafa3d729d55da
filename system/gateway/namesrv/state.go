package namesrv

import (
	"errors"
	"fmt"
	"maps"

	"github.com/actormq/actormq/segments/metadata"
)

// orderNamespace holds the configurations of order topics.
const orderNamespace = "ORDER_TOPIC_CONFIG"

// maxKVBytes bounds all names and values together.
const maxKVBytes = 16 << 20

// errKVFull: the key-value namespaces hold maxKVBytes.
var errKVFull = errors.New("the key-value configuration is full")

// kvFile is the content of kvConfig.json.
type kvFile struct {
	Table map[string]map[string]string `json:"configTable"`
}

// state is what is published: it never changes.
type state struct {
	kv    map[string]map[string]string // by namespace; no namespace is empty
	bytes int                          // of kv
	wiped map[string]struct{}          // topics of this node's broker without write permission

	remote *remotes // the brokers that have registered
}

// withKV returns the state with a value set, or taken out when value is nil.
func (s *state) withKV(namespace, key string, value *string) (*state, error) {
	next := *s
	next.kv = maps.Clone(s.kv)
	if next.kv == nil {
		next.kv = map[string]map[string]string{}
	}
	space := maps.Clone(s.kv[namespace])
	if old, there := space[key]; there {
		next.bytes -= len(namespace) + len(key) + len(old)
		delete(space, key)
	}
	if value != nil {
		if space == nil {
			space = map[string]string{}
		}
		space[key] = *value
		next.bytes += len(namespace) + len(key) + len(*value)
	}
	next.kv[namespace] = space
	if len(space) == 0 {
		delete(next.kv, namespace)
	}
	if next.bytes > maxKVBytes {
		return nil, fmt.Errorf("%w: limit %d bytes", errKVFull, maxKVBytes)
	}
	return &next, nil
}

// perm is a topic's permission as this name server tells it.
func (s *state) perm(topic string, perm int) int {
	if _, wiped := s.wiped[topic]; wiped {
		return perm &^ metadata.PermWrite
	}
	return perm
}
