package messages_test

import (
	"bytes"
	"compress/zlib"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

func TestInflateIsBounded(t *testing.T) {
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, err := z.Write(make([]byte, 1000))
	require.NoError(t, errors.Join(err, z.Close()))
	plain, err := messages.Inflate(packed.Bytes(), 1000)
	require.NoError(t, err)
	require.Equal(t, make([]byte, 1000), plain)
	_, err = messages.Inflate(packed.Bytes(), 999)
	require.EqualError(t, err, "more than 999 bytes")
	_, err = messages.Inflate([]byte("plain"), 1000)
	require.ErrorIs(t, err, zlib.ErrHeader)
}
