package messages

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
)

// ErrMessageID says that a string is no offset message id.
var ErrMessageID = errors.New("bad offset message id")

// Lengths of an offset message id in characters.
const (
	messageIDCharsV4 = 2 * (4 + 4 + 8)
	messageIDCharsV6 = 2 * (16 + 4 + 8)
)

const upperHex = "0123456789ABCDEF"

// OffsetMessageID returns the id that names a record by the store's address and the record's place: upper-case hex of
// address, port as i32 and physical offset, 32 characters for IPv4 and 56 for IPv6 (spec/store.md §2.7). The zero
// address is 0.0.0.0; an IPv4 address mapped into IPv6 counts as IPv4, as in Java; a zone is lost.
func OffsetMessageID(store netip.AddrPort, at PhysicalOffset) string {
	text := make([]byte, 0, messageIDCharsV6)
	return string(AppendOffsetMessageID(text, store, at))
}

// AppendOffsetMessageID appends the text of OffsetMessageID.
func AppendOffsetMessageID(dst []byte, store netip.AddrPort, at PhysicalOffset) []byte {
	raw := make([]byte, 0, messageIDCharsV6/2)
	if addr := store.Addr().Unmap(); addr.Is6() {
		ip := addr.As16()
		raw = append(raw, ip[:]...)
	} else if addr.Is4() {
		ip := addr.As4()
		raw = append(raw, ip[:]...)
	} else {
		raw = append(raw, 0, 0, 0, 0)
	}
	raw = binary.BigEndian.AppendUint32(raw, uint32(store.Port()))
	raw = binary.BigEndian.AppendUint64(raw, uint64(at))
	from := len(dst)
	dst = slices.Grow(dst, 2*len(raw))[:from+2*len(raw)]
	text := dst[from:]
	for i, b := range raw {
		text[2*i], text[2*i+1] = upperHex[b>>4], upperHex[b&15]
	}
	return dst
}

// ParseOffsetMessageID takes an offset message id apart (spec/store.md §2.7); lower-case hex is accepted. The error
// wraps [ErrMessageID] and says what is wrong: length, a character, the port or a negative offset.
func ParseOffsetMessageID(id string) (netip.AddrPort, PhysicalOffset, error) {
	if len(id) != messageIDCharsV4 && len(id) != messageIDCharsV6 {
		return netip.AddrPort{}, 0, fmt.Errorf("%w: %d characters, want %d or %d",
			ErrMessageID, len(id), messageIDCharsV4, messageIDCharsV6)
	}
	raw, err := hex.DecodeString(id)
	if err != nil {
		return netip.AddrPort{}, 0, fmt.Errorf("%w: %w", ErrMessageID, err)
	}
	ip, rest := raw[:len(raw)-12], raw[len(raw)-12:]
	addr, _ := netip.AddrFromSlice(ip) // 4 or 16 bytes, as the length was checked
	port, at := binary.BigEndian.Uint32(rest), int64(binary.BigEndian.Uint64(rest[4:]))
	if port > math.MaxUint16 {
		return netip.AddrPort{}, 0, fmt.Errorf("%w: port %d", ErrMessageID, port)
	}
	if at < 0 {
		return netip.AddrPort{}, 0, fmt.Errorf("%w: offset %d", ErrMessageID, at)
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), PhysicalOffset(at), nil
}
