package record

import (
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"net/netip"
	"unicode/utf8"

	"github.com/actormq/actormq/messages"
)

// Magic numbers and smallest sizes; they are part of the format (spec/store.md §2.1, §2.4, §15).
const (
	Magic      uint32 = 0xDAA320A7 // a normal record
	MagicV2    uint32 = 0xDAA320AB // as RocketMQ 5 writes it for long topics: TOPICLEN has 16 bits
	BlankMagic uint32 = 0xCBD43194 // the end of a segment

	MinBytes   = 91 // a record with two IPv4 hosts, without body, topic and properties
	BlankBytes = 8  // what must stay free behind every record: a blank
)

// Offsets of the fields up to BORNHOST; the later ones depend on the hosts.
const (
	totalSizeAt      = 0
	magicAt          = 4
	bodyCRCAt        = 8
	queueIDAt        = 12
	flagAt           = 16
	queueOffsetAt    = 20
	physicalOffsetAt = 28
	sysFlagAt        = 36
	bornTimestampAt  = 40
	bornHostAt       = 48
)

// Sizes of the parts that vary.
const (
	hostV4Bytes = 4 + 4
	hostV6Bytes = 16 + 4
	extraV6     = hostV6Bytes - hostV4Bytes
)

// Reasons why a message can't be encoded; the error wraps one of them and carries the numbers.
var (
	// ErrTopicLength: the topic is empty or longer than 127 bytes of UTF-8.
	ErrTopicLength = errors.New("topic has no legal length")
	// ErrTopicEncoding: the topic is not UTF-8.
	ErrTopicEncoding = errors.New("topic is not UTF-8")
	// ErrPropertiesTooLong: more than 32767 bytes of properties, in a batch member with those of the envelope.
	ErrPropertiesTooLong = errors.New("properties are too long")
	// ErrRecordTooLong: the record, or all of a batch, would not fit the format's 31 bits of length.
	ErrRecordTooLong = errors.New("record is too long")
)

// Size returns the bytes that the message takes as a record. The error wraps [ErrTopicLength], [ErrTopicEncoding],
// [ErrPropertiesTooLong] or [ErrRecordTooLong]. Limits beyond the format's own (message size, segment) are the caller's.
func Size(m *messages.Message) (int, error) {
	if err := checkTopic(m.Topic); err != nil {
		return 0, err
	}
	d := draft{outer: m.Properties}
	return sizeOf(fixedBytes(m), len(m.Body), d.propertiesBytes())
}

// StoreTimestampOffset returns where in a record with this SYSFLAG the store timestamp lies: 56, or 68 behind an IPv6
// born host.
func StoreTimestampOffset(sysFlag int32) int { return bornHostAt + bornHostBytes(sysFlag) }

// CRC returns the BODYCRC field for a body: CRC-32 (IEEE) without its top bit, 0 for an empty one (spec/store.md §2.3).
func CRC(body []byte) uint32 { return crc32.ChecksumIEEE(body) & math.MaxInt32 }

func bornHostBytes(sysFlag int32) int {
	if sysFlag&messages.SysFlagBornHostV6 != 0 {
		return hostV6Bytes
	}
	return hostV4Bytes
}

func storeHostBytes(sysFlag int32) int {
	if sysFlag&messages.SysFlagStoreHostV6 != 0 {
		return hostV6Bytes
	}
	return hostV4Bytes
}

// checkTopic refuses what RocketMQ would store and then never find again (spec/store.md §16 W2).
func checkTopic(topic string) error {
	if len(topic) < 1 || len(topic) > messages.MaxTopicBytes {
		return fmt.Errorf("%w: %d bytes, want 1 to %d", ErrTopicLength, len(topic), messages.MaxTopicBytes)
	}
	if !utf8.ValidString(topic) {
		return fmt.Errorf("%w: %q", ErrTopicEncoding, topic)
	}
	return nil
}

// fixedBytes returns the size of a record of the message without its body and properties.
func fixedBytes(m *messages.Message) int {
	size := MinBytes + len(m.Topic)
	if isV6(m.BornHost) {
		size += extraV6
	}
	if isV6(m.StoreHost) {
		size += extraV6
	}
	return size
}

// sizeOf adds up a record and checks the two lengths that the format limits.
func sizeOf(fixed, bodyBytes, propertiesBytes int) (int, error) {
	if propertiesBytes > messages.MaxPropertiesBytes {
		return 0, fmt.Errorf("%w: %d bytes, at most %d", ErrPropertiesTooLong, propertiesBytes, messages.MaxPropertiesBytes)
	}
	if rest := math.MaxInt32 - fixed - propertiesBytes; bodyBytes > rest {
		return 0, fmt.Errorf("%w: body of %d bytes, at most %d here", ErrRecordTooLong, bodyBytes, rest)
	}
	return fixed + bodyBytes + propertiesBytes, nil
}

// hostBits returns the SYSFLAG with the two host bits as the hosts are, whatever they were before: a record whose bits
// contradict its hosts could not be read.
func hostBits(m *messages.Message) int32 {
	flag := m.SysFlag &^ (messages.SysFlagBornHostV6 | messages.SysFlagStoreHostV6)
	if isV6(m.BornHost) {
		flag |= messages.SysFlagBornHostV6
	}
	if isV6(m.StoreHost) {
		flag |= messages.SysFlagStoreHostV6
	}
	return flag
}

// isV6 tells whether a host takes 16 bytes. An IPv4 address mapped into IPv6 takes 4, as in Java.
func isV6(host netip.AddrPort) bool { return host.Addr().Is6() && !host.Addr().Is4In6() }
