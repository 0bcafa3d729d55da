package acl

import (
	"maps"
	"slices"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/fastjson"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// Routes are the requests 50 to 54 (spec/remoting.md §16.5).
func (k *Keeper) Routes() gateway.Routes {
	waits := func(h func(*gateway.Request)) gateway.Route { return gateway.Route{Handle: h, Lane: gateway.Ordered} }
	return gateway.Routes{
		remoting.RequestUpdateAndCreateACLConfig:     waits(k.update),
		remoting.RequestDeleteACLConfig:              waits(k.remove),
		remoting.RequestGetBrokerClusterACLInfo:      waits(k.info),
		remoting.RequestUpdateGlobalWhiteAddrsConfig: waits(k.global),
		remoting.RequestGetBrokerClusterACLConfig:    waits(k.config),
	}
}

func (k *Keeper) update(r *gateway.Request) {
	var h remoting.UpdateACLHeader
	if broker.Header(r, &h) {
		_, adminGiven := r.ExtFields.Get("admin")
		k.ask(r, remoting.ResponseUpdateAndCreateACLConfigFailed, setAccount(&h, adminGiven))
	}
}

func (k *Keeper) remove(r *gateway.Request) {
	var h remoting.DeleteACLHeader
	if broker.Header(r, &h) {
		k.ask(r, remoting.ResponseDeleteACLConfigFailed, dropAccount(h.AccessKey))
	}
}

func (k *Keeper) global(r *gateway.Request) {
	var h remoting.WhiteAddrsHeader
	if broker.Header(r, &h) {
		k.ask(r, remoting.ResponseUpdateGlobalWhiteAddrsConfigFailed, setGlobal(h.GlobalWhiteAddrs, h.ACLFileFullPath))
	}
}

// ask has the keeper change the rules, and answers; failed is the code of a refusal.
func (k *Keeper) ask(r *gateway.Request, failed int, edit func(*Rules) (text, error)) {
	m := change{edit: edit, answer: messages.NewAnswer[struct{}]()}
	ctx, cancel := k.cfg.Broker.Context()
	defer cancel()
	k.self.Send(m)
	if _, err := m.answer.Wait(ctx); err != nil {
		r.Fail(failed, err.Error())
		return
	}
	r.OK(nil)
}

// info answers 52: the versions of the files.
func (k *Keeper) info(r *gateway.Request) {
	rules := k.Rules()
	all := map[string]remoting.DataVersion{}
	for _, t := range rules.texts {
		all[t.name] = t.file.version()
	}
	first, err := fastjson.Marshal(rules.texts[0].file.version())
	if err == nil {
		var every []byte
		if every, err = fastjson.Marshal(all); err == nil {
			r.OK(&remoting.ACLInfoAnswer{
				Version: string(first), AllACLFileVersion: string(every), BrokerName: k.cfg.Broker.BrokerName,
				BrokerAddr: k.cfg.Broker.Address, ClusterName: k.cfg.Broker.ClusterName,
			})
			return
		}
	}
	r.Fail(remoting.ResponseSystemError, err.Error())
}

// config answers 54: everything, keys included, to administrators.
func (k *Keeper) config(r *gateway.Request) {
	rules := k.Rules()
	all := remoting.ACLConfig{GlobalWhiteAddrs: []string{}, PlainAccessConfigs: []remoting.PlainAccessConfig{}}
	for _, t := range rules.texts {
		all.GlobalWhiteAddrs = append(all.GlobalWhiteAddrs, t.file.Global...)
	}
	for _, key := range slices.Sorted(maps.Keys(rules.accounts)) {
		a := rules.accounts[key]
		all.PlainAccessConfigs = append(all.PlainAccessConfigs, remoting.PlainAccessConfig{
			AccessKey: a.AccessKey, Admin: a.Admin, DefaultGroupPerm: a.DefaultGroupPerm, DefaultTopicPerm: a.DefaultTopicPerm,
			GroupPerms: append([]string{}, a.GroupPerms...), SecretKey: a.SecretKey, TopicPerms: append([]string{}, a.TopicPerms...),
			WhiteRemoteAddress: a.WhiteRemoteAddress,
		})
	}
	r.OKBody(&all)
}
