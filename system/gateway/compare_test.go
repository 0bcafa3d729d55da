package gateway_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/fastjson"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/segments/record"
	"github.com/actormq/actormq/testkit/frames"
)

// varying are ext fields whose values depend on what else a broker has stored, and when: they are only there.
var varying = []string{
	"msgId", "queueOffset", "nextBeginOffset", "maxOffset", "offset", "timestamp", "indexLastUpdatePhyoffset",
	"indexLastUpdateTimestamp", "wipeTopicCount", "addTopicCount", "bornHost", "storeTimestamp", "PUSH_REPLY_TIME",
}

// clocks are members of bodies that are so.
var clocks = []string{
	"lastUpdateTimestamp", "lastTimestamp", "maxOffset", "brokerOffset", "consumerOffset", "clientAddr", "remoteIP", "physicOffset",
	"physicSize", "maxQueueIndex", "consumeTimeStamp", "consumeTimeStampStr", "delayTime", "maxTimeStamp", "maxTimeStampStr",
	"minTimeStamp", "minTimeStampStr", "sum", "tps", "avgpt",
}

// compare holds an answer against the recorded one, field by field.
func compare(t *testing.T, want *frames.Frame, got, request *remoting.Command, s step) {
	t.Helper()
	require.Equal(t, request.Opaque, got.Opaque)
	require.Equal(t, request.Binary, got.Binary)
	if s.remark == "" {
		require.Equal(t, want.Header.Remark, got.Remark)
	} else {
		require.Contains(t, got.Remark, s.remark)
	}
	compareHeader(t, want, got)
	switch {
	case len(want.BodyRecords) > 0:
		compareRecords(t, want, got.Body)
	case want.BodyText == "":
		require.Empty(t, got.Body)
	case s.shape:
		require.Equal(t, members(t, []byte(want.BodyText)), members(t, got.Body), "%s", got.Body)
	default:
		require.Equal(t, leveled(t, []byte(want.BodyText)), leveled(t, got.Body))
	}
}

func compareHeader(t *testing.T, want *frames.Frame, got *remoting.Command) {
	t.Helper()
	require.Equal(t, want.Header.Code, got.Code, got.Remark)
	require.Equal(t, want.Header.Flag, got.Flag)
	require.Equal(t, remoting.Version, got.Version)
	require.Equal(t, want.Header.Language, got.Language.String())
	if !got.Binary {
		require.Equal(t, want.Header.ExtFields == nil, got.ExtFields == nil, "no ext fields, or empty ones")
	}
	wanted, fields := maps.Clone(want.Header.ExtFields), map[string]string{}
	for _, pair := range got.ExtFields {
		fields[pair.Name] = pair.Value
	}
	for _, name := range varying {
		if _, there := fields[name]; there && wanted[name] != "" {
			fields[name] = wanted[name]
		}
	}
	if p, there := fields["properties"]; there {
		require.Equal(t, propertiesOf(wanted["properties"]), propertiesOf(p))
		fields["properties"] = wanted["properties"]
	}
	if len(wanted)+len(fields) > 0 {
		require.Equal(t, wanted, fields)
	}
}

// propertiesOf are the properties without their order and the times in them.
func propertiesOf(text string) map[string]string {
	all := map[string]string{}
	for pair := range strings.SplitSeq(strings.TrimSuffix(text, "\x02"), "\x02") {
		name, value, _ := strings.Cut(pair, "\x01")
		if all[name] = value; slices.Contains(varying, name) {
			all[name] = ""
		}
	}
	return all
}

// recordedMessage is what a record in a recorded body is compared by.
type recordedMessage struct {
	TotalSize     int32
	QueueID       int32
	SysFlag       int32
	Flag          int32
	BodyCRC       uint32
	BornTimestamp int64
	Body, Topic   string
	Properties    string
}

// compareRecords looks for the recorded messages among those of an answer: one at least is there, and whichever is there is
// the same.
func compareRecords(t *testing.T, want *frames.Frame, body []byte) {
	t.Helper()
	var recorded []recordedMessage
	require.NoError(t, json.Unmarshal(want.BodyRecords, &recorded))
	list, err := record.DecodeAll(body)
	require.NoError(t, err)
	same := 0
	for _, m := range list {
		for _, r := range recorded {
			key, _ := m.Properties.Get("UNIQ_KEY")
			if key == "" || propertiesOf(r.Properties)["UNIQ_KEY"] != key {
				continue
			}
			same++
			require.Equal(t, r, recordedMessage{
				TotalSize: m.StoreSize, QueueID: m.QueueID, SysFlag: m.SysFlag, Flag: m.Flag, BodyCRC: m.BodyCRC,
				BornTimestamp: m.BornTimestampMs, Body: string(m.Body), Topic: m.Topic, Properties: r.Properties,
			})
			require.Equal(t, propertiesOf(r.Properties), propertiesOf(string(m.Properties)))
		}
	}
	require.Positive(t, same, "none of the recorded messages")
}

// leveled is a JSON text with every clock set to its name, and lists of names sorted.
func leveled(t *testing.T, text []byte) any {
	t.Helper()
	return level(jsonOf(t, text))
}

func jsonOf(t *testing.T, text []byte) any {
	t.Helper()
	strict, err := fastjson.Relax(text)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(strict, &v), "%s", text)
	return v
}

func level(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = level(v[i])
		}
		if len(v) > 0 {
			if _, names := v[0].(string); names {
				slices.SortFunc(v, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
			}
		}
	case map[string]any:
		for name := range v {
			if v[name] = level(v[name]); slices.Contains(clocks, name) {
				v[name] = name
			}
		}
	}
	return v
}

var memberName = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

// members are the names of a JSON text's members, at any depth; keys that are data are left out.
func members(t *testing.T, text []byte) []string {
	t.Helper()
	names := map[string]struct{}{}
	collect(jsonOf(t, text), names)
	return slices.Sorted(maps.Keys(names))
}

func collect(v any, into map[string]struct{}) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			collect(e, into)
		}
	case map[string]any:
		for name, e := range v {
			var key any
			if memberName.MatchString(name) {
				into[name] = struct{}{}
			} else if json.Unmarshal([]byte(name), &key) == nil {
				collect(key, into) // an object as a key
			}
			collect(e, into)
		}
	}
}
