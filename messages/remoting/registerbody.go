package remoting

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strconv"
	"strings"

	"github.com/actormq/actormq/messages/fastjson"
)

// RegisterBrokerBody is the body of 103: the topics of a broker (spec/remoting.md §6.1).
type RegisterBrokerBody struct {
	FilterServerList            []string         `json:"filterServerList"`
	TopicConfigSerializeWrapper TopicConfigTable `json:"topicConfigSerializeWrapper"`
}

// ErrCRC is the refusal of a register body whose checksum does not fit; its text is the remark of the original.
var ErrCRC = errors.New("crc32 not match")

// maxInflated bounds what a compressed register body may grow to: what could be sent without compression.
const maxInflated = DefaultFrameBytes

// RegisterCRC is the checksum of a register body.
func RegisterCRC(body []byte) int32 { return int32(crc32.ChecksumIEEE(body) & 0x7FFFFFFF) }

// DecodeRegisterBody checks and reads the body of 103 in the form that its header names. No body is the empty table
// with DataVersion 0, 0. The compressed form has neither order nor topicSysFlag.
func DecodeRegisterBody(h *RegisterBrokerHeader, body []byte) (*RegisterBrokerBody, error) {
	decoded := &RegisterBrokerBody{}
	if len(body) == 0 {
		return decoded, nil
	}
	if h.BodyCRC32 != 0 && h.BodyCRC32 != RegisterCRC(body) {
		return nil, ErrCRC
	}
	decode := func(b []byte) error { return fastjson.Unmarshal(b, decoded) }
	if h.Compressed {
		decode = decoded.inflate
	}
	if err := decode(body); err != nil {
		return nil, fmt.Errorf("register body of %.127q: %w", h.BrokerName, err)
	}
	return decoded, nil
}

// Encode writes the body in one of its forms and sets in h what says so.
func (b *RegisterBrokerBody) Encode(h *RegisterBrokerHeader, compressed bool) (body []byte, err error) {
	if h.Compressed = compressed; compressed {
		body, err = b.deflate()
	} else {
		body, err = fastjson.Marshal(b)
	}
	if err != nil {
		return nil, fmt.Errorf("register body of %.127q: %w", h.BrokerName, err)
	}
	h.BodyCRC32 = RegisterCRC(body)
	return body, nil
}

// deflate writes the compressed form: see inflate.
func (b *RegisterBrokerBody) deflate() ([]byte, error) {
	table := &b.TopicConfigSerializeWrapper
	version, err := fastjson.Marshal(&table.DataVersion)
	if err != nil {
		return nil, err
	}
	filters, err := fastjson.Marshal(b.FilterServerList)
	if err != nil {
		return nil, err
	}
	plain := appendSized(nil, version)
	plain = binary.BigEndian.AppendUint32(plain, uint32(len(table.TopicConfigTable)))
	for name, t := range table.TopicConfigTable {
		plain = appendSized(plain, fmt.Appendf(nil, "%s %d %d %d %s", name, t.ReadQueueNums, t.WriteQueueNums, t.Perm, t.TopicFilterType))
	}
	var out bytes.Buffer
	z, err := zlib.NewWriterLevel(&out, zlib.BestCompression)
	if err == nil {
		if _, err = z.Write(appendSized(plain, filters)); err == nil {
			err = z.Close()
		}
	}
	return out.Bytes(), err
}

func appendSized(b, part []byte) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(part))), part...)
}

// inflate reads the compressed form: zlib of
//
//	| len i32, DataVersion JSON | topic count i32 | { len i32, "name read write perm filterType" } … | len i32, JSON list |
func (b *RegisterBrokerBody) inflate(body []byte) error {
	z, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		return err
	}
	plain, err := io.ReadAll(io.LimitReader(z, maxInflated+1))
	if err != nil {
		return err
	}
	if len(plain) > maxInflated {
		return fmt.Errorf("%w: inflated over %d bytes", ErrFrameTooLarge, maxInflated)
	}
	r := binaryReader{text: string(plain)}
	table := &b.TopicConfigSerializeWrapper
	if err := r.json("data version", &table.DataVersion); err != nil {
		return err
	}
	if table.TopicConfigTable, err = r.topics(); err != nil {
		return err
	}
	return r.json("filter servers", &b.FilterServerList)
}

func (b *binaryReader) json(what string, v any) error {
	text := b.string(4)
	if b.bad {
		return fmt.Errorf("%w: %s beyond the end", ErrBadFrame, what)
	}
	if err := fastjson.Unmarshal([]byte(text), v); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (b *binaryReader) topics() (map[string]TopicConfig, error) {
	if len(b.text) < 4 {
		return nil, fmt.Errorf("%w: topic count beyond the end", ErrBadFrame)
	}
	count := binary.BigEndian.Uint32([]byte(b.text[:4]))
	b.text = b.text[4:]
	topics := map[string]TopicConfig{}
	for i := range count {
		line := b.string(4)
		if b.bad {
			return nil, fmt.Errorf("%w: topic %d of %d beyond the end", ErrBadFrame, i, count)
		}
		topic, err := parseTopicLine(line)
		if err != nil {
			return nil, err
		}
		topics[topic.TopicName] = topic
	}
	return topics, nil
}

func parseTopicLine(line string) (TopicConfig, error) {
	words := strings.Split(line, " ")
	if len(words) != 5 {
		return TopicConfig{}, fmt.Errorf("%w: topic line %.200q", ErrBadFrame, line)
	}
	var numbers [3]int32
	for i := range numbers {
		n, err := strconv.ParseInt(words[1+i], 10, 32)
		if err != nil {
			return TopicConfig{}, fmt.Errorf("%w: topic line %.200q: %w", ErrBadFrame, line, err)
		}
		numbers[i] = int32(n)
	}
	return TopicConfig{
		TopicName: words[0], ReadQueueNums: numbers[0], WriteQueueNums: numbers[1], Perm: numbers[2], TopicFilterType: words[4],
	}, nil
}
