// Package admin is the port for whoever operates a node: it shows how the node is, and lets it be looked into. It reads what
// store and gateway count anyway; nothing of it is on the way of a put.
//
//	GET /console/      pages for people: package console
//	GET /metrics       Prometheus; docs/METRICS.md lists all
//	GET /healthz       200 while the process answers
//	GET /readyz        200 while puts are taken; else 503 and why. A slave is ready without taking puts
//	GET /loglevel      the log level; PUT with a level as body changes it for the process
//	GET /debug/pprof/  profiles of the Go runtime
//
// Metrics and health are for everybody who reaches the port; what is beyond, package guard lets only those to who may: on loopback
// whoever is on the machine, elsewhere who knows the password. The port has no TLS: it belongs on loopback, in a network of its
// own, or behind a proxy that has.
package admin
