package messages

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
)

// Inflate uncompresses a body of type ZLIB (spec/store.md §2.2); one that grows beyond the limit, in bytes, is an error.
func Inflate(body []byte, limit int) ([]byte, error) {
	z, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(z, int64(limit)+1))
	if err == nil && len(plain) > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	return plain, err
}
