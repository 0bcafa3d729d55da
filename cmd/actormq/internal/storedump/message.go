package storedump

import (
	"bytes"
	"compress/zlib"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

const (
	// shownBodyBytes is up to which length a body is written out.
	shownBodyBytes = 256
	// maxPlainBytes bounds what a compressed body may grow to.
	maxPlainBytes = 1 << 30
)

var errTooLarge = errors.New("the uncompressed body is too large")

// message describes a whole record.
func message(r *record.Record, raw []byte) object {
	stored := r.Stored()
	o := object{
		{"phyOffset", int64(r.PhysicalOffset)}, {"size", r.Size}, {"topic", string(r.Topic)}, {"queueId", r.QueueID},
		{"queueOffset", int64(r.QueueOffset)}, {"msgId", stored.OffsetMessageID()}, {"flag", r.Flag}, {"sysFlag", r.SysFlag},
		{"bodyCRC", int32(r.BodyCRC)}, {"crcOk", len(r.Body) == 0 || record.CRC(r.Body) == r.BodyCRC},
		{"bornTimestamp", r.BornTimestampMs}, {"bornHost", host(r.BornHost)}, {"storeTimestamp", r.StoreTimestampMs},
		{"storeHost", host(r.StoreHost)}, {"reconsumeTimes", r.ReconsumeTimes},
		{"preparedTransactionOffset", int64(r.PreparedTransactionOffset)}, {"bodyLen", len(r.Body)},
	}
	if len(r.Body) <= shownBodyBytes {
		o = append(o, field{"bodyHex", hex.EncodeToString(r.Body)})
	} else {
		o = append(o, field{"bodySha256", sha(r.Body)})
	}
	if r.SysFlag&messages.SysFlagCompressed != 0 {
		o = append(o, plain(r)...)
	}
	return append(o, field{"properties", properties(stored.Properties)}, field{"rawSha256", shortSHA(raw)})
}

func sha(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// shortSHA is the first half of the digest.
func shortSHA(b []byte) string { return sha(b)[:16] }

// host is an address as Java writes it, IPv6 without any zeros left out.
func host(h netip.AddrPort) string {
	if a := h.Addr(); a.Is6() {
		b := a.As16()
		var groups []string
		for i := 0; i < len(b); i += 2 {
			groups = append(groups, fmt.Sprintf("%x", int(b[i])<<8|int(b[i+1])))
		}
		return fmt.Sprintf("%s|%d", strings.Join(groups, ":"), h.Port())
	}
	return fmt.Sprintf("%s|%d", h.Addr(), h.Port())
}

func properties(p messages.Properties) object {
	pairs := p.Map()
	o := object{}
	for name, value := range pairs {
		o = append(o, field{name, value})
	}
	slices.SortFunc(o, func(a, b field) int { return compareUTF16(a.name, b.name) })
	return o
}

// plain describes the body of a compressed message (spec/store.md §2.2).
func plain(r *record.Record) object {
	n, sum, err := uncompress(r)
	if err != nil {
		return object{{"plainError", err.Error()}}
	}
	return object{{"plainLen", n}, {"plainSha256", sum}}
}

func uncompress(r *record.Record) (n int64, sum string, err error) {
	in, err := decompressor(r)
	if err != nil {
		return 0, "", err
	}
	defer in.Close()
	digest := sha256.New()
	if n, err = io.Copy(digest, io.LimitReader(in, maxPlainBytes+1)); err != nil {
		return 0, "", err
	}
	if n > maxPlainBytes {
		return 0, "", errTooLarge
	}
	return n, hex.EncodeToString(digest.Sum(nil)), nil
}

// Uncompress reads a compressed body (spec/store.md §2.2) of a kind, up to a limit.
func Uncompress(kind int32, body []byte, limit int) ([]byte, error) {
	in, err := decompressor(&record.Record{SysFlag: kind, Body: body})
	if err != nil {
		return nil, err
	}
	defer in.Close()
	plain, err := io.ReadAll(io.LimitReader(in, int64(limit)+1))
	if err == nil && len(plain) > limit {
		err = errTooLarge
	}
	return plain, err
}

func decompressor(r *record.Record) (io.ReadCloser, error) {
	body := bytes.NewReader(r.Body)
	switch kind := r.SysFlag & messages.SysFlagCompressionMask; kind {
	case messages.SysFlagCompressionLZ4:
		return io.NopCloser(lz4.NewReader(body)), nil
	case messages.SysFlagCompressionZSTD:
		d, err := zstd.NewReader(body, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxPlainBytes))
		if err != nil {
			return nil, err
		}
		return d.IOReadCloser(), nil
	case 0, messages.SysFlagCompressionZLIB:
		return zlib.NewReader(body)
	default:
		return nil, fmt.Errorf("unknown compression type %#x", kind)
	}
}
