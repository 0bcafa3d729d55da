// Package acl is RocketMQ's access control (spec/remoting.md §16): accounts with keys, permissions and addresses in YAML files,
// signed requests, and the requests by which tools change the accounts.
//
//	file watcher ── FilesChanged ──► keeper ── reads, checks, publishes ──► Rules ◄── Check, of every request, without a hop
//	requests 50, 51, 53 ───────────►   └── writes the file first
//
// Files that can't be used change nothing: the rules before stay, and the log says why. Only a start without usable rules fails.
// It is stricter than the original: what changes or shows accounts needs an administrator, batches and replies need the
// topic's permission as single messages do, and a name server with access control is changed by administrators only. No
// request names a path.
package acl
