package index

import "math"

// Packed are keys that wait for a set, 12 bytes each: see Keys.Take and Set.BuildKeys. They never change.
type Packed struct {
	parts []part
	n     int
}

// part is keys of records whose places and times are near the first one's.
type part struct {
	at, ms int64 // of the first record
	keys   []packedKey
}

// packedKey is a hashedKey whose record lies so many bytes behind the part's first one, and was stored so many ms behind it.
type packedKey struct {
	hash   int32
	behind uint32
	later  int32
}

// Len is the number of keys.
func (p *Packed) Len() int { return p.n }

func pack(all []hashedKey) Packed {
	p := Packed{n: len(all)}
	packed := make([]packedKey, 0, len(all))
	for i := range all {
		k := &all[i]
		if i == 0 || !p.parts[len(p.parts)-1].fits(k) {
			p.parts = append(p.parts, part{at: k.at, ms: k.ms, keys: packed[i:i]})
		}
		last := &p.parts[len(p.parts)-1]
		last.keys = append(last.keys, packedKey{hash: k.hash, behind: uint32(k.at - last.at), later: int32(k.ms - last.ms)})
	}
	return p
}

func (p *part) fits(k *hashedKey) bool {
	behind, later := k.at-p.at, k.ms-p.ms
	return behind >= 0 && behind <= math.MaxUint32 && later >= math.MinInt32 && later <= math.MaxInt32
}

// unpack appends the keys to some others.
func (p *part) unpack(to []hashedKey, keys []packedKey) []hashedKey {
	for _, k := range keys {
		to = append(to, hashedKey{hash: k.hash, at: p.at + int64(k.behind), ms: p.ms + int64(k.later)})
	}
	return to
}
