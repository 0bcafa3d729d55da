// Package metadata keeps the JSON files of a store: topics, subscription groups, consumer offsets and delay offsets
// (spec/store.md §13). RocketMQ reads what it writes, and the reverse.
//
//	config/topics.json             TopicTable
//	config/subscriptionGroup.json  GroupTable
//	config/consumerOffset.json     OffsetTable
//	config/delayOffset.json        DelayOffsets
//
// Each file has the one before it beside it as .bak. Save replaces a file so that at any moment, power cuts included,
// either the old or the new content loads. Files are strict JSON, indented by tabs, members sorted by name; they are read
// in RocketMQ's dialect too (bare integer keys). Members that this version does not know are kept when a file is written
// again: see Unknown.
//
// The types are plain data; Save and Load are safe for concurrent use on different files.
package metadata
