// Package cluster runs a replica group of real processes on loopback, does harm to whoever leads while clients send and read, and looks
// whether anything that was acknowledged is lost.
//
//	Group      the processes: start, kill, pause, resume, stop in order, cut off from the others
//	Network    network namespaces, a host for each node, and a router that drops what it is told to
//	Load       clients that send, and one that reads every queue, through routes of the nodes' own name servers
//	history    what all clients have asked of the load's queues, and when
//	Promises   messages with a delay, and half messages whose producer says what becomes of them under the next leader only
//
// What the test requires after each round, and at the end:
//
//   - Every message whose send was answered with SEND_OK is in the queue and at the offset that the answer named.
//   - What a reader has seen at an offset stays there, and a queue's end never goes back behind what was seen.
//   - Sends and reads of each queue can have happened one after the other, each within its own time (porcupine).
//   - The commit logs of all nodes are the same bytes.
//   - Clients that ask the name server of the node that was hurt first find the next leader.
//   - The reader's group is where it was. Each delayed message is delivered, and not early; each transaction that was open while a leader went
//     is asked for by the next one, and is delivered or not as its producer says.
//   - Clients that reach only a leader that is cut off are told no, never that a message is stored, not even FLUSH_SLAVE_TIMEOUT; what they
//     sent is in quarantine/ of that node once it follows again, and in no log.
//
// `go test ./testkit/cluster` does each harm once; ACTORMQ_CLUSTER_ROUNDS=50 go test -timeout 30m ./testkit/cluster -v does 50.
package cluster
