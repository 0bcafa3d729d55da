package remoting

import (
	"bufio"
	"bytes"
	"testing"

	"github.com/actormq/actormq/messages/fastjson"
	"github.com/actormq/actormq/testkit/frames"
)

func BenchmarkReadSend(b *testing.B) {
	for name, frame := range map[string][]byte{
		"codec=json": frames.Get("send-v2").Request.Bytes, "codec=binary": frames.Get("send-v2-binary").Request.Bytes, "codec=json-go": frames.Get("send-v1-go").Request.Bytes,
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			source := bytes.NewReader(nil)
			r := bufio.NewReader(source)
			for b.Loop() {
				source.Reset(frame)
				r.Reset(source)
				c, err := ReadCommand(r, Limits{})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := DecodeSend(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkReadPull(b *testing.B) {
	frame := frames.Get("pull-found").Request.Bytes
	b.ReportAllocs()
	source := bytes.NewReader(nil)
	r := bufio.NewReader(source)
	for b.Loop() {
		source.Reset(frame)
		r.Reset(source)
		c, err := ReadCommand(r, Limits{})
		if err != nil {
			b.Fatal(err)
		}
		var h PullMessageHeader
		if err := FromExt(c.ExtFields, &h); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAnswer(b *testing.B) {
	request := &Command{Opaque: 77, Version: Version}
	for name, h := range map[string]Header{
		"code=send": &SendMessageAnswer{MsgID: "7F00000100002A9F0000000000000000", QueueID: 3, QueueOffset: 1_234_567, MsgRegion: "DefaultRegion", TraceOn: true},
		"code=pull": &PullMessageAnswer{NextBeginOffset: 1_234_567, MinOffset: 1000, MaxOffset: 2_345_678},
	} {
		for codec, binary := range map[string]bool{"json": false, "binary": true} {
			b.Run(name+"/codec="+codec, func(b *testing.B) {
				request.Binary = binary
				b.ReportAllocs()
				var out []byte
				for b.Loop() {
					c := request.Answer(ResponseSuccess, "FOUND")
					c.ExtFields = ToExt(h)
					var err error
					if out, err = c.AppendHeader(out[:0], 4096); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkRouteBody(b *testing.B) {
	var route TopicRouteData
	if err := fastjson.Unmarshal(frames.Get("route-master-slave").Response.Body(), &route); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		c := Command{}
		if err := c.EncodeBody(&route); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHeartbeatBody(b *testing.B) {
	c := &Command{Code: RequestHeartbeat, Body: frames.Get("heartbeat-consumer-go").Request.Body()}
	b.ReportAllocs()
	for b.Loop() {
		var beat HeartbeatData
		if err := c.DecodeBody(&beat); err != nil {
			b.Fatal(err)
		}
	}
}
