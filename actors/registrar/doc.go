// Package registrar keeps a broker registered at the name servers of an existing cluster (spec/remoting.md §6): at its start, at an
// interval, at once when topics have changed or a connection was lost, and out again when it stops. One name server that is
// down does not hold up the others; it is tried again after a pause that grows.
//
//	topic keeper ── TopicsChanged ──► registrar ── goroutine, one a name server at a time ── call ──► name server
//
// What is registered is asked for when it is sent, so that changes that come while a registration is under way make one
// more, however many they are.
package registrar
