// Package admin answers the requests of tools: topics and groups, who is online and how far they are, messages by id and by
// key, statistics, and what is relayed to clients (spec/remoting.md §17).
package admin
