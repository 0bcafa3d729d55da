// Command actormq is a message store and broker that keeps the files and the protocol of RocketMQ 4.x.
//
//	actormq node      run a broker with its name server
//	actormq produce   send messages from a shell
//	actormq consume   read messages at a shell
//	actormq store     look at a store directory
//
// The exit status is 0 when all was done, 1 otherwise; what went wrong is on standard error.
package main
