// Package record is the codec of the commit log: bytes to records and back (spec/store.md §2). It does no I/O, reads no
// clock and keeps no state; every function is safe for concurrent use on different buffers.
//
// All integers are big-endian two's complement. A normal record, with the offsets for two IPv4 hosts (each IPv6 host
// shifts what follows by 12):
//
//	 0  TOTALSIZE        i32   the whole record
//	 4  MAGICCODE        i32   0xDAA320A7 (0xDAA320AB: version 2, read but never written)
//	 8  BODYCRC          i32   CRC-32 (IEEE) of the body with the top bit dropped; 0 for an empty body
//	12  QUEUEID          i32
//	16  FLAG             i32   the application's own
//	20  QUEUEOFFSET      i64   hole
//	28  PHYSICALOFFSET   i64   hole: the record's own place
//	36  SYSFLAG          i32   bit 4: BORNHOST is IPv6, bit 5: STOREHOST is IPv6
//	40  BORNTIMESTAMP    i64   ms, the client's clock
//	48  BORNHOST         4+4 or 16+4: address, port as i32
//	56  STORETIMESTAMP   i64   ms, hole
//	64  STOREHOST        4+4 or 16+4
//	72  RECONSUMETIMES   i32
//	76  PREPARED OFFSET  i64   of the half message of a committed one
//	84  BODYLEN, BODY    i32 + n
//	 …  TOPICLEN, TOPIC  i8 + n, at most 127 (version 2: i16 + n)
//	 …  PROPSLEN, PROPS  i16 + n, at most 32767
//
// A segment ends with a blank record: the rest of the segment as i32, then 0xCBD43194; what follows is undefined.
//
// The way of a put: the caller's goroutine encodes with [Append] or [AppendBatch] and leaves the three holes zero; the
// writer, who alone knows the order, fills them with [SetPlace] and copies the bytes into the segment.
//
// [Parse] trusts nothing: every length is checked before it is used, and its errors tell torn, unallocated, damaged and
// newer apart. What it can't see: only the body is covered by a checksum, so damage in the header, the topic or the
// properties that keeps the lengths consistent goes unnoticed. Neither does it compare PHYSICALOFFSET with the record's
// place, nor judge the topic: an empty one, or one that is no fit name for a directory, is the caller's business.
package record
