package index

import "github.com/actormq/actormq/messages"

// Keys are the keys of records, hashed, in the order in which they were added. One goroutine may make them while another one uses the
// set that they are for: see Packed.
type Keys struct {
	all  []hashedKey
	of   int32  // number of the record that keys are added of
	text []byte // of the key that is being hashed
}

// hashedKey is a key of a record.
type hashedKey struct {
	hash   int32
	of     int32
	at, ms int64 // physical offset and store timestamp of the record
}

// Add adds the keys of a record: the unique one, and each of those that spaces separate. It tells whether there was any.
func (k *Keys) Add(topic []byte, uniqKey, keys string, at messages.PhysicalOffset, storeTimestampMs int64) bool {
	before := len(k.all)
	addKeys(k, topic, uniqKey, keys, at, storeTimestampMs)
	return len(k.all) > before
}

// Take returns the keys that were added, packed in memory of their own, and begins anew.
func (k *Keys) Take() Packed {
	p := pack(k.all)
	k.clear()
	return p
}

// Len is the number of keys.
func (k *Keys) Len() int { return len(k.all) }

func (k *Keys) clear() { k.all = k.all[:0] }

// bytestring is either of the two forms in which the parts of a record come.
type bytestring interface{ ~string | ~[]byte }

func addKeys[T, K bytestring](k *Keys, topic T, uniqKey, keys K, at messages.PhysicalOffset, ms int64) {
	if len(uniqKey) > 0 {
		k.all = append(k.all, hashedKey{hash: hashOfKey(&k.text, topic, uniqKey), of: k.of, at: int64(at), ms: ms})
	}
	for rest := keys; len(rest) > 0; {
		var key K
		if key, rest = cut(rest); len(key) > 0 {
			k.all = append(k.all, hashedKey{hash: hashOfKey(&k.text, topic, key), of: k.of, at: int64(at), ms: ms})
		}
	}
}

// cut returns what is in front of the first space, and what is behind it.
func cut[K bytestring](keys K) (key, rest K) {
	for i := range len(keys) {
		if keys[i] == ' ' {
			return keys[:i], keys[i+1:]
		}
	}
	return keys, keys[len(keys):]
}

// hashOfKey hashes "topic#key", which it puts together in text.
func hashOfKey[T, K bytestring](text *[]byte, topic T, key K) int32 {
	b := append(append(append((*text)[:0], topic...), '#'), key...)
	*text = b
	return hashOf(b)
}
