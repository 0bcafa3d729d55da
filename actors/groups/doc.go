// Package groups is the group keeper: it owns the configurations of subscription groups and config/subscriptionGroup.json
// (spec/store.md §13, spec/remoting.md §15.4).
//
//	EnsureGroup                 a group's first use: a heartbeat, a pull, a send-back
//	UpdateGroup, DeleteGroup    tools
//	ReplaceGroups               what a master says
//
// What it shares with other keepers of configurations (one change for all that waits, durable before it is answered; readers that
// look at a published table) is package keeper. Who is online is not its business: that is package clients.
package groups
