// Package documents runs what the documents say to type: each command of README, docs/ and the READMEs of testkit is run as it stands there, in order,
// where the text that it stands in would have it run: beside a node, on a store that RocketMQ wrote, in a replica group. A capital word in a
// command is what the reader puts in. docs/GUIDE.md has testkit/guide.sh for that. What can't run in a test is in a list with the reason, and is
// checked as far as it can be.
package documents
