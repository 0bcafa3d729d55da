// Package topics is the topic keeper: it owns the topic configurations and config/topics.json (spec/store.md §13).
//
//	UpdateTopic, DeleteTopic            tools
//	EnsureTopicForSend                  the topic of a send, after the template that the producer names
//	EnsureTopic                         topics of the broker's own: retry, dead letters, transactions
//	OrderTopics, ReplaceTopics          what name servers and a master say
//
// What it shares with other keepers of configurations (one change for all that waits, durable before it is answered; readers that
// look at a published table) is package keeper. The listener is told what each save has changed.
package topics
