// Package topics is the topic keeper: it owns the topic configurations and config/topics.json (spec/store.md §13).
//
//	UpdateTopic, DeleteTopic            tools
//	EnsureTopicForSend                  the topic of a send, after the template that the producer names
//	EnsureTopic                         topics of the broker's own: retry, dead letters, transactions
//	OrderTopics, ReplaceTopics          what name servers and a master say
//
// The requests that wait in the mailbox are handled as one change:
//
//	draft ← requests → save (durable) → publish → tell the listener → answer
//
// When the save fails, the draft is dropped, nothing is published and each of them is answered with the cause. So what is
// answered survives a power cut, and many topics made at once cost one write.
//
// The actor runs on a goroutine of its own, which waits for the disk. Readers look topics up in the published table, which
// never changes, without a hop and without a lock; they see a change before it is answered.
package topics
