package client

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"time"
)

// keys makes unique keys in the form of RocketMQ's clients: 10 bytes that are the client's own, 4 of the ms since the begin of the month,
// from which tools read the time, 2 of a counter; in hexadecimal.
type keys struct {
	own  [10]byte
	last *atomic.Uint32
}

func newKeys() keys {
	k := keys{last: new(atomic.Uint32)}
	binary.BigEndian.PutUint64(k.own[:], rand.Uint64())
	binary.BigEndian.PutUint16(k.own[8:], uint16(rand.Uint32()))
	return k
}

func (k keys) next() string {
	now := time.Now()
	month := time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, now.Location())
	var b [16]byte
	copy(b[:], k.own[:])
	binary.BigEndian.PutUint32(b[10:], uint32(now.Sub(month).Milliseconds()))
	binary.BigEndian.PutUint16(b[14:], uint16(k.last.Add(1)))
	return strings.ToUpper(hex.EncodeToString(b[:]))
}
