// Package certs has the certificates of a node's ports (spec/remoting.md §1.7): read from files, or, without any, one that the node
// has made itself at its start and signed itself, as RocketMQ does by default. The files are watched; connections that begin
// after a change use the new ones. Files that can't be used change nothing, and the log says why.
package certs
