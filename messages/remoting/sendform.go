package remoting

import (
	"strconv"
	"strings"

	"github.com/actormq/actormq/messages/fastjson"
)

// A node reads a header of the short form, and writes an answer, for each message that it is sent. So these two have ways of their own,
// which are to do what [Fields] does.

// readShort reads the short form in one pass. False: something is missing or wrong, which [Fields] words; h is filled in part then.
func (h *SendMessageHeader) readShort(ext Ext) bool {
	const required = 1<<('h'-'a'+1) - 1 // a to h
	h.MaxReconsumeTimes = AbsentTimes
	seen, good := 0, true
	for i := range ext {
		if len(ext[i].Name) != 1 || ext[i].Name[0]-'a' > 'n'-'a' {
			continue
		}
		letter, value := ext[i].Name[0], ext[i].Value
		seen |= 1 << (letter - 'a')
		switch letter {
		case 'a':
			h.ProducerGroup = value
		case 'b':
			h.Topic = value
		case 'c':
			h.DefaultTopic = value
		case 'd':
			good = shortNumber(value, &h.DefaultTopicQueueNums) && good
		case 'e':
			good = shortNumber(value, &h.QueueID) && good
		case 'f':
			good = shortNumber(value, &h.SysFlag) && good
		case 'g':
			n, ok := parseInt(value, 64)
			h.BornTimestampMs, good = n, ok && good
		case 'h':
			good = shortNumber(value, &h.Flag) && good
		case 'i':
			h.Properties = value
		case 'j':
			good = (value == "" || shortNumber(value, &h.ReconsumeTimes)) && good
		case 'k':
			h.UnitMode = isTrue(value)
		case 'l':
			good = (value == "" || shortNumber(value, &h.MaxReconsumeTimes)) && good
		case 'm':
			h.Batch = isTrue(value)
		case 'n':
			h.BrokerName = value
		}
	}
	return good && seen&required == required
}

func shortNumber(value string, p *int32) bool {
	n, ok := parseInt(value, 32)
	*p = int32(n)
	return ok
}

// isTrue reads a boolean: "true" in any case.
func isTrue(value string) bool { return value == "true" || strings.EqualFold(value, "true") }

// appendJSON writes the fields as members of a JSON object.
func (h *SendMessageAnswer) appendJSON(dst []byte) []byte {
	dst = fastjson.AppendString(append(dst, `"msgId":`...), h.MsgID)
	dst = strconv.AppendInt(append(dst, `,"queueId":"`...), int64(h.QueueID), 10)
	dst = strconv.AppendInt(append(dst, `","queueOffset":"`...), h.QueueOffset, 10)
	dst = append(dst, '"')
	if h.TransactionID != "" {
		dst = fastjson.AppendString(append(dst, `,"transactionId":`...), h.TransactionID)
	}
	if h.MsgRegion != "" {
		dst = fastjson.AppendString(append(dst, `,"`+ExtMsgRegion+`":`...), h.MsgRegion)
	}
	if h.TraceOn {
		return append(dst, `,"`+ExtTraceOn+`":"true"`...)
	}
	return append(dst, `,"`+ExtTraceOn+`":"false"`...)
}
