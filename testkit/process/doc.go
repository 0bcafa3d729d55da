// Package process runs a node of actormq in a test as a process of its own: one that can be killed and measured.
package process
