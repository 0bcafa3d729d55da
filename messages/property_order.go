package messages

import (
	"cmp"
	"slices"
	"strings"
)

// MapBuckets is how many buckets a map of RocketMQ's begins with.
const MapBuckets = 16

// InMapOrder returns the properties in the order in which RocketMQ writes a map of them that began with so many buckets, a
// power of two (spec/store.md §2.9): what it rebuilds from a map is then the same, byte for byte. What no reader sees is gone.
// Readers do not depend on an order.
func (p Properties) InMapOrder(buckets int) Properties {
	type pair struct {
		name, value string
		hash        uint32
	}
	var pairs []pair
	for name, value := range p.All() {
		at := slices.IndexFunc(pairs, func(x pair) bool { return x.name == name })
		if at >= 0 {
			pairs[at].value = value
			continue
		}
		h := uint32(JavaHash(name))
		pairs = append(pairs, pair{name, value, h ^ h>>16})
	}
	for len(pairs) > buckets*3/4 {
		buckets *= 2
	}
	mask := uint32(buckets - 1)
	slices.SortStableFunc(pairs, func(a, b pair) int { return cmp.Compare(a.hash&mask, b.hash&mask) })
	b := strings.Builder{}
	b.Grow(len(p))
	for i, x := range pairs {
		if i > 0 {
			b.WriteByte(propertySeparator)
		}
		writePair(&b, x.name, x.value)
	}
	return Properties(b.String())
}
