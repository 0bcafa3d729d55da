// Package nodeconf is the configuration of a node: a broker.conf of RocketMQ, environment variables and flags, one layer
// over the other, mapped onto the options of the store and the gateway.
//
//	defaults < broker.conf < ACTORMQ_<key in capitals> < --set key=value and the flags
//
// A key has RocketMQ's name. A key of RocketMQ that a node has no use for is accepted and reported; any other key is an
// error that names the nearest known one.
package nodeconf
