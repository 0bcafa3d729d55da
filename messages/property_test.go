package messages_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
)

func TestPropertiesMap(t *testing.T) {
	for _, c := range []struct {
		name string
		wire messages.Properties
		want map[string]string
	}{
		{"none", "", nil},
		{"pairs, §17.10", "a\x01b\x02c\x01d\x02", map[string]string{"a": "b", "c": "d"}},
		{"empty name and value, §17.10", "a\x01\x02\x01x\x02bb\x01c", map[string]string{"bb": "c"}},
		{"separator in the value, §17.10", "a\x01b\x01c", map[string]string{"a": "b\x01c"}},
		{"no separator in a pair, §17.10", "abc\x02d\x01e", map[string]string{"d": "e"}},
		{"the value is a separator", "a\x01\x01", map[string]string{"a": "\x01"}},
		{"name of two separators", "\x01\x01b", map[string]string{}},
		{"last of equal names wins", "a\x01b\x02c\x01d\x02a\x01e", map[string]string{"a": "e", "c": "d"}},
		{"empty last one does not win", "a\x01b\x02a\x01", map[string]string{"a": "b"}},
		{"only separators", "\x02\x02\x01\x02", map[string]string{}},
		{"shortest pair", "a\x01b", map[string]string{"a": "b"}},
		{"beyond ASCII", "名\x01值\x02\U0001F600\x01é", map[string]string{"名": "值", "\U0001F600": "é"}},
		{"not UTF-8", "\xff\x01\xfe\xe4", map[string]string{"\xff": "\xfe\xe4"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, c.wire.Map())
			require.Equal(t, c.wire, messages.ViewProperties([]byte(c.wire)))
			for name, value := range c.want {
				got, found := c.wire.Get(name)
				require.True(t, found)
				require.Equal(t, value, got)
			}
		})
	}
}

func TestPropertiesGetOfWhatIsNotThere(t *testing.T) {
	wire := messages.Properties("TAGSX\x01a\x02XTAGS\x01b\x02tags\x01c\x02TAGS\x01\x02TAGS\x02\x01TAGS")
	for _, name := range []string{"TAGS", "", "\x01", "\x02", "TAGSX\x01a"} {
		value, found := wire.Get(name)
		require.False(t, found, "%q", name)
		require.Empty(t, value, "%q", name)
	}
	_, found := messages.Properties("").Get("TAGS")
	require.False(t, found)
}

func TestPropertiesAllStopsAndKeepsOrder(t *testing.T) {
	wire := messages.Properties("b\x011\x02a\x012\x02b\x013")
	var seen []string
	for name, value := range wire.All() {
		seen = append(seen, name+value)
		if len(seen) == 2 {
			break
		}
	}
	require.Equal(t, []string{"b1", "a2"}, seen)
	seen = nil
	for name, value := range wire.All() {
		seen = append(seen, name+value)
	}
	require.Equal(t, []string{"b1", "a2", "b3"}, seen, "a name that occurs twice is yielded twice")
}

func TestPropertiesOf(t *testing.T) {
	for _, c := range []struct {
		pairs map[string]string
		want  messages.Properties
	}{
		{nil, ""},
		{map[string]string{"b": "2", "a": "1", "c": ""}, "a\x011\x02b\x012\x02c\x01"},
		{map[string]string{"a": "1\x012"}, "a\x011\x012"},
		{map[string]string{"a": "1\x02b\x013", "c": "4"}, "c\x014"},
		{map[string]string{"": "1", "x\x01y": "2", "x\x02y": "3"}, ""},
	} {
		require.Equal(t, c.want, messages.PropertiesOf(c.pairs), "%q", c.pairs)
	}
}

func TestCheckProperty(t *testing.T) {
	require.NoError(t, messages.CheckProperty("a", "b\x01c"))
	require.NoError(t, messages.CheckProperty("a", ""))
	for _, c := range [][3]string{
		{"", "a", "empty name"}, {"a\x01", "b", "in the name"}, {"a\x02", "b", "in the name"}, {"a", "b\x02", "in the value"},
	} {
		err := messages.CheckProperty(c[0], c[1])
		require.ErrorIs(t, err, messages.ErrProperty)
		require.ErrorContains(t, err, c[2])
	}
}

func TestPropertiesWith(t *testing.T) {
	for _, c := range []struct {
		name       string
		wire       messages.Properties
		key, value string
		want       messages.Properties
	}{
		{"into nothing", "", "a", "b", "a\x01b"},
		{"behind others", "a\x01b", "c", "d", "a\x01b\x02c\x01d"},
		{"behind a trailing separator", "a\x01b\x02", "c", "d", "a\x01b\x02c\x01d"},
		{"in place of another", "a\x01b\x02c\x01d", "a", "e", "c\x01d\x02a\x01e"},
		{"in place of several", "a\x01b\x02c\x01d\x02a\x01\x02a\x01f\x02", "a", "e", "c\x01d\x02a\x01e"},
		{"only one there", "a\x01b\x02", "a", "e", "a\x01e"},
		{"behind what is no pair", "xyz", "a", "b", "xyz\x02a\x01b"},
		{"empty value", "x\x01y", "a", "", "x\x01y\x02a\x01"},
		{"empty name", "x\x01y", "", "b", "x\x01y"},
		{"forged pair in the value", "x\x01y\x02a\x01b", "a", "c\x02x\x01z", "x\x01y"},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, c.wire.With(c.key, c.value)) })
	}
}

func TestPropertiesWithout(t *testing.T) {
	wire := messages.Properties("WAIT\x01true\x02TAGS\x01\x02xWAIT\x01y\x02\x02WAIT\x02WAIT\x01false\x02\x01v\x02")
	for _, c := range []struct {
		names []string
		want  messages.Properties
	}{
		{nil, wire},
		{[]string{"KEYS", "WAIT\x01true", "x"}, wire},
		{[]string{"WAIT"}, "TAGS\x01\x02xWAIT\x01y\x02WAIT\x02\x01v"},
		{[]string{"TAGS", "WAIT"}, "xWAIT\x01y\x02WAIT\x02\x01v"},
		{[]string{""}, "WAIT\x01true\x02TAGS\x01\x02xWAIT\x01y\x02WAIT\x02WAIT\x01false"},
	} {
		require.Equal(t, c.want, wire.Without(c.names...), "%q", c.names)
	}
	require.Empty(t, messages.Properties("a\x01b\x02").Without("a"))
}

// The names are written on the wire and on disk: a slip in one is a silent incompatibility.
func TestPropertyNames(t *testing.T) {
	names := strings.Fields(`KEYS TAGS UNIQ_KEY WAIT DELAY REAL_TOPIC REAL_QID RETRY_TOPIC ORIGIN_MESSAGE_ID RECONSUME_TIME
		MAX_RECONSUME_TIMES CONSUME_START_TIME TRAN_MSG PGROUP TRANSACTION_CHECK_TIMES CHECK_IMMUNITY_TIME_IN_SECONDS
		TRAN_PREPARED_QUEUE_OFFSET MIN_OFFSET MAX_OFFSET CLUSTER MSG_REGION TRACE_ON INNER_MULTI_DISPATCH
		INNER_MULTI_QUEUE_OFFSET INSTANCE_ID CORRELATION_ID REPLY_TO_CLIENT TTL ARRIVE_TIME PUSH_REPLY_TIME MSG_TYPE
		BUYER_ID TRANSFER_FLAG CORRECTION_FLAG MQ2_FLAG`)
	require.Equal(t, names, []string{
		messages.PropertyKeys, messages.PropertyTags, messages.PropertyUniqKey, messages.PropertyWait,
		messages.PropertyDelay, messages.PropertyRealTopic, messages.PropertyRealQueueID, messages.PropertyRetryTopic,
		messages.PropertyOriginMessageID, messages.PropertyReconsumeTime, messages.PropertyMaxReconsumeTimes,
		messages.PropertyConsumeStartTime, messages.PropertyTransactionMessage, messages.PropertyProducerGroup,
		messages.PropertyTransactionChecks, messages.PropertyCheckImmunitySeconds, messages.PropertyPreparedQueueOffset,
		messages.PropertyMinOffset, messages.PropertyMaxOffset, messages.PropertyCluster, messages.PropertyMessageRegion,
		messages.PropertyTraceOn, messages.PropertyMultiDispatch, messages.PropertyMultiQueueOffset,
		messages.PropertyInstanceID, messages.PropertyCorrelationID, messages.PropertyReplyToClient, messages.PropertyTTL,
		messages.PropertyArriveTime, messages.PropertyPushReplyTime, messages.PropertyMessageType, messages.PropertyBuyerID,
		messages.PropertyTransferFlag, messages.PropertyCorrectionFlag, messages.PropertyMQ2Flag,
	})
}

func TestPropertiesReadWithoutAllocation(t *testing.T) {
	wire := []byte(typicalProperties)
	total := 0
	require.Zero(t, testing.AllocsPerRun(100, func() {
		view := messages.ViewProperties(wire)
		tags, _ := view.Get(messages.PropertyTags)
		for name, value := range view.All() {
			total += len(name) + len(value) + len(tags)
		}
		total += len(view.Without(messages.PropertyWait, messages.PropertyDelay))
	}), "reading")
	require.EqualValues(t, 1, testing.AllocsPerRun(100, func() {
		propertiesSink = messages.Properties(typicalProperties).With(messages.PropertyCluster, "DefaultCluster")
	}), "adding one property copies once")
	require.NotZero(t, total)
}

const typicalProperties = "UNIQ_KEY\x010A010203000018B4AAC206E2D6190000\x02TAGS\x01TagA\x02KEYS\x01k1 k2"

var propertiesSink messages.Properties

// FuzzProperties compares with a plain port of Java's reader, and checks the writers against the map they mean.
func FuzzProperties(f *testing.F) {
	for _, seed := range []string{
		"", typicalProperties, "a\x01b\x02c\x01d\x02", "a\x01\x02\x01x\x02bb\x01c", "a\x01b\x01c", "abc\x02d\x01e", "a\x01b\x02a\x01",
	} {
		f.Add(seed, "a", "z")
		f.Add(seed, "TAGS", "x\x02y")
	}
	f.Fuzz(func(t *testing.T, wire, name, value string) {
		p := messages.Properties(wire)
		want := javaRead(wire)
		require.Equal(t, want, p.Map())
		got, found := p.Get(name)
		wantValue, wantFound := want[name]
		require.Equal(t, wantFound, found)
		require.Equal(t, wantValue, got)
		require.Equal(t, len(want) == 0, messages.PropertiesOf(want) == "")
		if len(want) > 0 {
			require.Equal(t, want, messages.PropertiesOf(want).Map())
		}

		rest := map[string]string{}
		maps.Copy(rest, want)
		delete(rest, name)
		require.True(t, maps.Equal(rest, p.Without(name).Map()), "without %q: %q", name, p.Without(name))
		if messages.CheckProperty(name, value) == nil && value != "" {
			rest[name] = value
			require.Equal(t, rest, p.With(name, value).Map())
		}
	})
}

// javaRead is MessageDecoder.string2messageProperties, line by line.
func javaRead(properties string) map[string]string {
	if properties == "" {
		return nil
	}
	pairs := map[string]string{}
	for index := 0; index < len(properties); {
		end := strings.IndexByte(properties[index:], 2)
		if end < 0 {
			end = len(properties)
		} else {
			end += index
		}
		if end-index >= 3 {
			at := strings.IndexByte(properties[index:], 1) + index
			if at > index && at < end-1 {
				pairs[properties[index:at]] = properties[at+1 : end]
			}
		}
		index = end + 1
	}
	return pairs
}

func BenchmarkProperties(b *testing.B) {
	wire := messages.Properties(typicalProperties)
	b.Run("op=get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tags, _ := wire.Get(messages.PropertyTags)
			propertiesSink = messages.Properties(tags)
		}
	})
	b.Run("op=with", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			propertiesSink = wire.With(messages.PropertyCluster, "DefaultCluster")
		}
	})
	b.Run("op=without", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			propertiesSink = wire.Without(messages.PropertyWait)
		}
	})
}

func TestAppendWithIsWithoutAndWith(t *testing.T) {
	for _, wire := range []messages.Properties{
		"", "a\x01b", "WAIT\x01true", "a\x01b\x02", "WAIT\x01\x02a\x01b\x02\x02CLUSTER\x01x", "\x01v\x02WAIT\x01true", "no pair\x02\x02a\x01",
		"\x01v\x02a\x01b", "CLUSTER\x01x\x02WAIT\x01y\x02", "WAIT", "\x02", typicalProperties,
	} {
		for _, value := range []string{"c", "", "bad\x02"} {
			want := wire.Without("WAIT").With("CLUSTER", value)
			got := wire.AppendWith([]byte("before\x02"), "CLUSTER", value, "WAIT")
			require.Equal(t, "before\x02"+string(want), string(got), "%q", wire)
		}
	}
}

func TestDispatchedSaysWhatGetSays(t *testing.T) {
	require.Len(t, messages.PropertyTags, len(messages.PropertyKeys))
	check := func(t *testing.T, p messages.Properties) {
		keys, unique, tags := p.Dispatched()
		for name, got := range map[string]string{
			messages.PropertyKeys: keys, messages.PropertyUniqKey: unique, messages.PropertyTags: tags,
		} {
			want, _ := p.Get(name)
			require.Equal(t, want, got, "%s of %q", name, string(p))
		}
	}
	parts := []string{"", "KEYS", "TAGS", "UNIQ_KEY", "\x01", "\x02", "a", "KEYS\x01k", "TAGS\x01t", "UNIQ_KEY\x01u", "XKEYS\x01x", "WAIT\x01"}
	for _, a := range parts {
		for _, b := range parts {
			for _, c := range parts {
				for _, d := range parts {
					check(t, messages.Properties(a+b+c+d))
				}
			}
		}
	}
}
