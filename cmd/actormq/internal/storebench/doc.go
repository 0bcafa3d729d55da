// Package storebench measures the store in process: what `actormq bench store` runs. A workload fills a fresh directory,
// runs for a warm-up and then for the measured time, and prints one line of JSON. Workloads, arguments and fields are those of
// the benches of the other stores in testkit/bench, so that one program can compare them.
//
// Every run removes its directory before and after. Nothing here is part of a node.
package storebench
