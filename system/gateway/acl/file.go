package acl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/actormq/actormq/messages/remoting"
)

// ErrRules: a file of access rules can't be used; the message says where and why.
var ErrRules = errors.New("bad access rules")

// file is the content of plain_acl.yml.
type file struct {
	Global      []string  `yaml:"globalWhiteRemoteAddresses"`
	Accounts    []entry   `yaml:"accounts"`
	DataVersion []version `yaml:"dataVersion"`
}

// entry is an account as it is written.
type entry struct {
	AccessKey          string   `yaml:"accessKey"`
	SecretKey          string   `yaml:"secretKey"`
	WhiteRemoteAddress string   `yaml:"whiteRemoteAddress"`
	Admin              bool     `yaml:"admin"`
	DefaultTopicPerm   string   `yaml:"defaultTopicPerm"`
	DefaultGroupPerm   string   `yaml:"defaultGroupPerm"`
	TopicPerms         []string `yaml:"topicPerms"`
	GroupPerms         []string `yaml:"groupPerms"`
}

type version struct {
	Counter   int64 `yaml:"counter"`
	Timestamp int64 `yaml:"timestamp"`
}

// version is the last one that is written, 0, 0 when there is none.
func (f *file) version() remoting.DataVersion {
	if len(f.DataVersion) == 0 {
		return remoting.DataVersion{}
	}
	last := f.DataVersion[len(f.DataVersion)-1]
	return remoting.DataVersion{Counter: last.Counter, TimestampMs: last.Timestamp}
}

// parse reads a file. A word that is not known is an error: one that is misspelt would else take a permission away, or leave one
// out, without anybody noticing. So is a file that is empty, as one is that an editor is about to write, and what follows the
// first document.
func parse(name string, text []byte) (*file, error) {
	f := &file{}
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(f); errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %s is empty", ErrRules, name)
	} else if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRules, name, err)
	}
	if err := d.Decode(&file{}); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %s: there is more than one document in it", ErrRules, name)
	}
	return f, nil
}

// perm is a set of permissions: RocketMQ's bits.
type perm uint8

const (
	pub perm = 4
	sub perm = 8
)

// parsePerm reads DENY, PUB, SUB or PUB|SUB; nothing is DENY.
func parsePerm(text string) (perm, error) {
	var p perm
	for word := range strings.SplitSeq(text, "|") {
		switch strings.TrimSpace(word) {
		case "PUB":
			p |= pub
		case "SUB":
			p |= sub
		case "DENY", "":
			if strings.Contains(text, "|") {
				return 0, fmt.Errorf("permission %q: DENY and nothing stand alone", text)
			}
		default:
			return 0, fmt.Errorf("permission %q: DENY, PUB, SUB or PUB|SUB", text)
		}
	}
	return p, nil
}

// parsePerms reads a list of NAME=PERMISSION.
func parsePerms(list []string) (map[string]perm, error) {
	perms := map[string]perm{}
	for _, item := range list {
		name, text, ok := strings.Cut(item, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("%q: want NAME=PERMISSION", item)
		}
		p, err := parsePerm(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		perms[name] = p
	}
	return perms, nil
}

// leastKey is RocketMQ's: a key is longer than that.
const leastKey = 6

// account makes an entry usable.
func (e *entry) account() (*account, error) {
	if len(e.AccessKey) <= leastKey || len(e.SecretKey) <= leastKey {
		return nil, fmt.Errorf("accessKey and secretKey must have more than %d letters", leastKey)
	}
	a := &account{entry: *e}
	var err [5]error
	a.white, err[0] = parsePatterns(e.WhiteRemoteAddress)
	a.topicDefault, err[1] = parsePerm(e.DefaultTopicPerm)
	a.groupDefault, err[2] = parsePerm(e.DefaultGroupPerm)
	a.topics, err[3] = parsePerms(e.TopicPerms)
	a.groups, err[4] = parsePerms(e.GroupPerms)
	return a, errors.Join(err[:]...)
}

// node helpers: the file is edited in place, so that its comments and order stay.

func scalar(value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: value, Tag: "!!str"}
}

func sequence(values []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	for _, v := range values {
		n.Content = append(n.Content, scalar(v))
	}
	return n
}

func boolean(b bool) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatBool(b), Tag: "!!bool"}
}

func number(n int64) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: strconv.FormatInt(n, 10), Tag: "!!int"}
}

// get returns the value of a key of a mapping, nil when it has none.
func get(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

// put sets the value of a key of a mapping.
func put(mapping *yaml.Node, key string, value *yaml.Node) {
	if old := get(mapping, key); old != nil {
		value.LineComment, value.FootComment = old.LineComment, old.FootComment
		*old = *value
		return
	}
	mapping.Content = append(mapping.Content, scalar(key), value)
}
