package acl

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

// Rules are what is published: they never change.
type Rules struct {
	global   []pattern
	accounts map[string]*account // by access key

	texts []text // in the order of precedence; the first is the default file
}

// text is one file, as it was read.
type text struct {
	name    string
	content []byte
	file    *file
}

// account is an entry that has been checked.
type account struct {
	entry
	white                      []pattern
	topicDefault, groupDefault perm
	topics, groups             map[string]perm
}

// rulesOf puts the files together. An access key that is in two of them counts where it comes first.
func rulesOf(texts []text) (*Rules, error) {
	r := &Rules{accounts: map[string]*account{}, texts: texts}
	var bad []error
	for i := range texts {
		t := &texts[i]
		var err error
		if t.file, err = parse(t.name, t.content); err != nil {
			bad = append(bad, err)
			continue
		}
		for _, list := range t.file.Global {
			patterns, err := parsePatterns(list)
			if err != nil {
				bad = append(bad, fmt.Errorf("%w: %s: globalWhiteRemoteAddresses: %w", ErrRules, t.name, err))
			}
			r.global = append(r.global, patterns...)
		}
		for n := range t.file.Accounts {
			e := &t.file.Accounts[n]
			a, err := e.account()
			if err != nil {
				bad = append(bad, fmt.Errorf("%w: %s: account %d, %q: %w", ErrRules, t.name, n+1, e.AccessKey, err))
				continue
			}
			if r.accounts[e.AccessKey] == nil {
				r.accounts[e.AccessKey] = a
			}
		}
	}
	if len(bad) == 0 && len(r.accounts) == 0 && len(r.global) == 0 {
		bad = append(bad, fmt.Errorf("%w: neither accounts nor globalWhiteRemoteAddresses: nobody could do anything", ErrRules))
	}
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	return r, nil
}

// adminOnly are the requests that only an administrator may make.
var adminOnly = []int{
	remoting.RequestUpdateAndCreateTopic, remoting.RequestUpdateBrokerConfig, remoting.RequestDeleteTopicInBroker,
	remoting.RequestUpdateAndCreateSubscriptionGroup, remoting.RequestDeleteSubscriptionGroup, remoting.RequestGetBrokerConfig,
	remoting.RequestUpdateAndCreateACLConfig, remoting.RequestDeleteACLConfig, remoting.RequestUpdateGlobalWhiteAddrsConfig,
	remoting.RequestGetBrokerClusterACLConfig, remoting.RequestDrainBroker, remoting.RequestPromoteBroker,
}

// adminOnlyNames are those of a name server; who reads routes needs no account there, as in the original.
var adminOnlyNames = []int{
	remoting.RequestUpdateNamesrvConfig, remoting.RequestPutKVConfig, remoting.RequestDeleteKVConfig,
	remoting.RequestWipeWritePermOfBroker, remoting.RequestAddWritePermOfBroker, remoting.RequestDeleteTopicInNamesrv,
	remoting.RequestRegisterBroker, remoting.RequestUnregisterBroker,
}

// DeniedError is a refusal; its text is the remark, as the original words it.
type DeniedError struct{ Reason string }

// Error implements error.
func (e *DeniedError) Error() string {
	return "org.apache.rocketmq.acl.common.AclException: " + e.Reason
}

func denied(format string, args ...any) error {
	return &DeniedError{Reason: fmt.Sprintf(format, args...)}
}

// CheckBroker decides on a request to a broker (spec/remoting.md §16.4); nil lets it through, else it is a *DeniedError.
func (r *Rules) CheckBroker(c *remoting.Command, peer netip.Addr) error {
	if matches(r.global, peer) {
		return nil
	}
	a, err := r.authenticate(c, peer)
	if err != nil || a == nil {
		return err
	}
	if slices.Contains(adminOnly, c.Code) && !a.Admin {
		return denied("Need admin permission for request code=%d, but accessKey=%s is not", c.Code, a.AccessKey)
	}
	needs, err := resources(c)
	if err != nil {
		return denied("%s", err.Error())
	}
	for _, n := range needs {
		if n.group || n.name != messages.TopicTrace || n.perm != pub {
			if err := a.allows(n); err != nil {
				return err
			}
		}
	}
	return nil
}

// CheckNames decides on a request to a name server.
func (r *Rules) CheckNames(c *remoting.Command, peer netip.Addr) error {
	if !slices.Contains(adminOnlyNames, c.Code) || matches(r.global, peer) {
		return nil
	}
	a, err := r.authenticate(c, peer)
	if err == nil && a != nil && !a.Admin {
		err = denied("Need admin permission for request code=%d, but accessKey=%s is not", c.Code, a.AccessKey)
	}
	return err
}

// authenticate returns whose request it is; nil without an error when it comes from an address from which that account is not
// asked any further.
func (r *Rules) authenticate(c *remoting.Command, peer netip.Addr) (*account, error) {
	key, _ := c.ExtFields.Get(remoting.FieldAccessKey)
	if key == "" {
		return nil, denied("No accessKey is configured")
	}
	a := r.accounts[key]
	switch {
	case a == nil:
		return nil, denied("No acl config for %s", key)
	case matches(a.white, peer):
		return nil, nil
	case !c.SignedBy(a.SecretKey):
		return nil, denied("Check signature failed for accessKey=%s", key)
	}
	return a, nil
}

// allows decides on one resource: what is said of it, else what is said of all of its kind. An administrator of whom nothing is
// said of it may do all.
func (a *account) allows(n need) error {
	kind, perms, byDefault := "topic", a.topics, a.topicDefault
	if n.group {
		kind, perms, byDefault = "group", a.groups, a.groupDefault
	}
	p, said := perms[n.name]
	if !said {
		if a.Admin {
			return nil
		}
		p = byDefault
	}
	if p&n.perm == 0 {
		return denied("No default permission for %s:%s", kind, n.name)
	}
	return nil
}
