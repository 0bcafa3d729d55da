package record_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

func TestABatchWithoutAPair(t *testing.T) {
	body := rawMember(1, "N in a body", "a\x01b")
	same := message("T", 0, string(body), "c|d")
	var scratch messages.Message
	require.Same(t, &same, record.BatchWithout(&same, &scratch, "N"))

	with := message("T", 0, string(append(rawMember(1, "x", "a\x01b\x02N\x011"), rawMember(2, "N\x01y", "")...)), "c|d,N|2")
	got := record.BatchWithout(&with, &scratch, "N")
	want := message("T", 0, string(append(rawMember(1, "x", "a\x01b"), rawMember(2, "N\x01y", "")...)), "c|d")
	wantRecords, _, err := appendBatch(nil, &want, 1<<20)
	require.NoError(t, err)
	gotRecords, _, err := appendBatch(nil, got, 1<<20)
	require.NoError(t, err)
	require.Equal(t, wantRecords, gotRecords)

	bad := message("T", 0, string(with.Body[:len(with.Body)-1]), "N|2")
	require.Same(t, &bad, record.BatchWithout(&bad, &scratch, "N"))
}
