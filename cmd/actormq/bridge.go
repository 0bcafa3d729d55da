package main

import (
	"strconv"

	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/ext/bridge"
)

// plugBridge adds the bridge that is configured. A slave has none: its master copies.
func (n *node) plugBridge(conf *nodeconf.Config, opt *system.Options) (err error) {
	if !conf.Bridge.On() {
		return nil
	}
	if opt.Role == messages.Slave {
		n.log.Warn().Msg("this slave copies nothing to another side: its master does")
		return nil
	}
	if n.bridge, err = bridge.New(conf.Bridge.Config); err == nil {
		n.bridge.Plug(opt)
	}
	return err
}

// bridgeStatus adds what tools show of the bridge.
func (n *node) bridgeStatus(values map[string]string) {
	if n.bridge == nil {
		return
	}
	now := n.bridge.Status(n.store)
	values["bridge"], values["bridgeState"] = now.Name, string(now.State)
	if now.LastError != nil {
		values["bridgeLastError"] = now.LastError.Error()
	}
	for name, count := range map[string]int64{
		"bridgeCopied": now.Copied, "bridgeUnconfirmed": now.Unconfirmed, "bridgeLooped": now.Looped, "bridgeIllegal": now.Illegal,
		"bridgeBehindBytes": now.LagBytes, "bridgeSkippedBytes": now.Skipped,
	} {
		values[name] = strconv.FormatInt(count, 10)
	}
}
