// Package deploy has tests of the files in docs/deploy: the Kubernetes manifests against the types of Kubernetes itself, whose fields
// are all there is. It is a module of its own, so that nobody else needs its libraries.
package deploy
