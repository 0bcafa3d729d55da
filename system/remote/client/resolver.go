package client

import (
	"context"
	"fmt"
	"slices"
)

// Resolver says where topics live. It is called on goroutines of its own, several at a time.
type Resolver interface {
	// Leader is the address of the store endpoint on the node that leads a topic: HOST:PORT. Failed is the address that was named before
	// and did not answer, or did not lead the topic; empty at the first time.
	Leader(ctx context.Context, topic, failed string) (address string, err error)
}

// Static is a Resolver of nodes that are known: the first one that answers and leads a topic is its leader.
type Static []string

// Leader implements Resolver.
func (s Static) Leader(_ context.Context, topic, failed string) (string, error) {
	if len(s) == 0 {
		return "", fmt.Errorf("%w: no node is named for topic %s", ErrOptions, topic)
	}
	return s[(slices.Index(s, failed)+1)%len(s)], nil
}
