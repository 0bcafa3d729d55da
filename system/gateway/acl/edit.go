package acl

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/actormq/actormq/messages/remoting"
)

// edit changes a file's document in place and counts its version up.
func (t text) edit(now time.Time, do func(root *yaml.Node) error) (text, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(t.content, &document); err != nil {
		return t, fmt.Errorf("%w: %s: %w", ErrRules, t.name, err)
	}
	root := document.Content[0] // an empty file is none of the rules'
	if err := do(root); err != nil {
		return t, err
	}
	put(root, "dataVersion", &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{{Kind: yaml.MappingNode, Content: []*yaml.Node{
		scalar("counter"), number(t.file.version().Counter + 1), scalar("timestamp"), number(now.UnixMilli()),
	}}}})
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(&document); err != nil {
		return t, fmt.Errorf("%w: %s: %w", ErrRules, t.name, err)
	}
	return text{name: t.name, content: out.Bytes()}, nil
}

// holder is the file that an account is in; the default file when it is in none.
func (r *Rules) holder(accessKey string) (t text, there bool) {
	for _, t := range r.texts {
		if slices.ContainsFunc(t.file.Accounts, func(e entry) bool { return e.AccessKey == accessKey }) {
			return t, true
		}
	}
	return r.texts[0], false
}

// accountsOf is the list of accounts of a document; it is made when there is none.
func accountsOf(root *yaml.Node) *yaml.Node {
	list := get(root, "accounts")
	if list == nil || list.Kind != yaml.SequenceNode {
		put(root, "accounts", &yaml.Node{Kind: yaml.SequenceNode})
		list = get(root, "accounts")
	}
	return list
}

func byKey(accessKey string) func(*yaml.Node) bool {
	return func(n *yaml.Node) bool {
		key := get(n, "accessKey")
		return key != nil && key.Value == accessKey
	}
}

// setAccount makes an account or changes what the request names of it.
func setAccount(h *remoting.UpdateACLHeader, adminGiven bool) func(*Rules) (text, error) {
	return func(r *Rules) (text, error) {
		t, _ := r.holder(h.AccessKey)
		return t.edit(time.Now(), func(root *yaml.Node) error {
			list := accountsOf(root)
			i := slices.IndexFunc(list.Content, byKey(h.AccessKey))
			if i < 0 {
				i = len(list.Content)
				list.Content = append(list.Content, &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar("accessKey"), scalar(h.AccessKey)}})
			}
			fill(list.Content[i], h, adminGiven)
			return nil
		})
	}
}

func fill(account *yaml.Node, h *remoting.UpdateACLHeader, adminGiven bool) {
	for key, value := range map[string]string{
		"secretKey": h.SecretKey, "whiteRemoteAddress": h.WhiteRemoteAddress,
		"defaultTopicPerm": h.DefaultTopicPerm, "defaultGroupPerm": h.DefaultGroupPerm,
	} {
		if value != "" {
			put(account, key, scalar(value))
		}
	}
	for key, value := range map[string]string{"topicPerms": h.TopicPerms, "groupPerms": h.GroupPerms} {
		if value != "" {
			put(account, key, sequence(strings.Split(value, ",")))
		}
	}
	if adminGiven {
		put(account, "admin", boolean(h.Admin))
	}
}

// dropAccount takes an account out; false: it is not there.
func dropAccount(accessKey string) func(*Rules) (text, error) {
	return func(r *Rules) (text, error) {
		t, there := r.holder(accessKey)
		if !there {
			return t, fmt.Errorf("there is no account %s", accessKey)
		}
		return t.edit(time.Now(), func(root *yaml.Node) error {
			list := accountsOf(root)
			list.Content = slices.DeleteFunc(list.Content, byKey(accessKey))
			return nil
		})
	}
}

// setGlobal replaces the addresses that need no account, in the default file or in another one that is in use already.
func setGlobal(list, name string) func(*Rules) (text, error) {
	return func(r *Rules) (text, error) {
		t := r.texts[0]
		if name != "" {
			i := slices.IndexFunc(r.texts, func(t text) bool { return t.name == name })
			if i < 0 {
				return t, fmt.Errorf("%s is none of the files in use", name)
			}
			t = r.texts[i]
		}
		return t.edit(time.Now(), func(root *yaml.Node) error {
			var addresses []string
			for _, part := range splitOutside(list) {
				if part = strings.TrimSpace(part); part != "" {
					addresses = append(addresses, part)
				}
			}
			put(root, "globalWhiteRemoteAddresses", sequence(addresses))
			return nil
		})
	}
}
