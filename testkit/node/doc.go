// Package node runs a whole node in a test with one call: a store on the simulated disk, the broker's port and a name server on
// free ports of the loopback interface.
package node
