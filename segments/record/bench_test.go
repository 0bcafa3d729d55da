package record_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/record"
)

func benchmarkMessage(bodyBytes int) messages.Message {
	return message("TopicTest", 3, strings.Repeat("b", bodyBytes),
		"UNIQ_KEY|0A010203000018B4AAC206E2D6190000,TAGS|TagA,CLUSTER|DefaultCluster")
}

func eachSize(b *testing.B, run func(b *testing.B, m *messages.Message)) {
	for _, size := range []int{64, 1024, 16 << 10} {
		b.Run(fmt.Sprintf("body=%d", size), func(b *testing.B) {
			m := benchmarkMessage(size)
			b.ReportAllocs()
			b.SetBytes(int64(size))
			run(b, &m)
		})
	}
}

func BenchmarkAppend(b *testing.B) {
	eachSize(b, func(b *testing.B, m *messages.Message) {
		buffer := make([]byte, 0, 32<<10)
		for b.Loop() {
			byteSink, _ = record.Append(buffer, m)
		}
	})
}

func BenchmarkSetPlace(b *testing.B) {
	m := benchmarkMessage(64)
	raw, err := record.Append(nil, &m)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		record.SetPlace(raw, 1, 2, storeTimestampMs)
	}
}

func BenchmarkParse(b *testing.B) {
	for _, checkCRC := range []bool{false, true} {
		b.Run(fmt.Sprintf("crc=%v", checkCRC), func(b *testing.B) {
			eachSize(b, func(b *testing.B, m *messages.Message) {
				raw, err := record.Append(nil, m)
				require.NoError(b, err)
				for b.Loop() {
					recordSink, _, _ = record.Parse(raw, checkCRC)
				}
			})
		})
	}
}

func BenchmarkTagsCode(b *testing.B) {
	m := benchmarkMessage(64)
	raw, err := record.Append(nil, &m)
	require.NoError(b, err)
	r, _, err := record.Parse(raw, false)
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		numberSink = r.TagsCode(standardDelay)
	}
}

func BenchmarkAppendBatch(b *testing.B) {
	body := strings.Repeat(string(rawMember(0, strings.Repeat("b", 64), "UNIQ_KEY\x010A010203000018B4AAC206E2D6190000")), 32)
	envelope := message("TopicTest", 3, body, "CLUSTER|DefaultCluster")
	buffer := make([]byte, 0, 64<<10)
	b.ReportAllocs()
	for b.Loop() {
		byteSink, _, _ = appendBatch(buffer, &envelope, 1<<20)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/32, "ns/record")
}
