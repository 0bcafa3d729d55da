package nodeconf

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system/gateway/broker"
)

// changeable are the keys that can be changed while the node runs: those that set what [Config.Running] returns, and nothing
// else. docs/COMPATIBILITY.md lists them.
var changeable = []string{
	"brokerPermission", "defaultQueryMaxNum", "enablePropertyFilter", "filterSupportRetry", "longPollingEnable",
	"notifyConsumerIdsChangedEnable", "rejectTransactionMessage", "searchOffsetNearest", "shortPollingTimeMills",
	"slaveReadEnable", "startAcceptSendRequestTimeStamp", "storeReplyMessageEnable", "strictPermission", "topicLimits", "traceOn",

	"cleanFileForciblyEnable", "deleteWhen", "diskMaxUsedSpaceRatio", "diskSpaceCleanForciblyRatio",
	"diskSpaceWarningLevelRatio", "fileReservedTime", "keepUnreadGroupTimeout", "keepUnreadMaxUsedSpaceRatio", "keepUnreadMessages",
	"topicRetention",
}

// Running is the part of the configuration that can be changed while the node runs.
type Running struct {
	Policy    broker.Policy
	Retention messages.Retention
}

// Running returns what holds of it.
func (c *Config) Running() Running {
	return Running{Policy: c.Gateway.Broker.Policy, Retention: c.Store.Retention}
}

// Change returns the configuration with some keys set anew, and leaves this one as it is. The error is ErrConfig and names
// every key that can't be changed while the node runs, or not to that value.
func (c *Config) Change(values map[string]string, source string) (*Config, error) {
	next := *c
	next.set = maps.Clone(c.set)
	var bad []error
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if slices.Contains(changeable, key) {
			bad = append(bad, next.Set(key, values[key], source))
			continue
		}
		bad = append(bad, refused(key, source))
	}
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	return &next, nil
}

// refused says why a key can't be changed.
func refused(key, source string) error {
	_, isFixed := fixed[key]
	isOurs := slices.ContainsFunc(keys, func(k keyDef) bool { return k.name == key })
	if isFixed || isOurs || slices.Contains(withoutEffect, key) {
		return fmt.Errorf("%w: %s can't be changed while the node runs", ErrConfig, key)
	}
	return unknown(key, source)
}
