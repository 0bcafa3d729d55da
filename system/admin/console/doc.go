// Package console is the pages that a node shows of itself to whoever operates it: rates and latencies, topics, groups,
// messages, dead letters, replicas, the disk, actors. They are made on the server from templates that are built in; a
// small script fetches them again while they are looked at, and draws nothing. There is no other asset and no other host.
//
// What is shown comes from what store and keepers publish anyway; a page that reads messages reads them as a consumer does, and
// few of them. Everything that clients can choose (names, properties, bodies) is escaped by the templates.
//
// Who may look and act is package guard's business.
package console
