// Package admin is the port for whoever operates a node: it shows how the node is, and lets it be looked into. It reads what
// store and gateway count anyway; nothing of it is on the way of a put.
//
//	GET /metrics       Prometheus; docs/METRICS.md lists all
//	GET /healthz       200 while the process answers
//	GET /readyz        200 while puts are taken; else 503 and why. A slave is ready without taking puts
//	GET /loglevel      the log level; PUT with a level as body changes it for the process
//	GET /debug/pprof/  profiles of the Go runtime
//
// The port has no access control and no TLS: it belongs on loopback or in a network of its own. A page in a browser can't
// change anything here, as the one request that changes something is a PUT.
package admin
