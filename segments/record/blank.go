package record

import (
	"encoding/binary"
	"fmt"
)

// AppendBlank appends the record that closes a segment with restBytes left: 8 bytes, of which the first four say
// restBytes (spec/store.md §2.4). The rest of the segment is left alone. Since 8 bytes stay free behind every record,
// fewer than [BlankBytes] is a bug of the caller and panics.
func AppendBlank(dst []byte, restBytes int32) []byte {
	if restBytes < BlankBytes {
		panic(fmt.Sprintf("BUG: blank record for %d bytes", restBytes))
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(restBytes))
	return binary.BigEndian.AppendUint32(dst, BlankMagic)
}
