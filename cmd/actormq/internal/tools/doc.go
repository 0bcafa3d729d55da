// Package tools are the commands of whoever operates a cluster, by which it is asked and changed over its ports, as any tool
// of RocketMQ's may: topics, groups, offsets, messages, dead letters. docs/CLI.md describes them.
//
//	command ── brokers of the cluster, from the name server ──► the same request to each master ──► lines, or JSON objects
//
// What a command prints, it prints in a fixed order. With --json each line is one JSON object.
package tools
