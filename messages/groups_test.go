package messages_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/messages/remoting"
)

func TestTagSubscription(t *testing.T) {
	for expression, want := range map[string][]string{
		"":               nil,
		"*":              nil,
		"TagA":           {"TagA"},
		"TagA || TagB":   {"TagA", "TagB"},
		" TagA||||TagB ": {"TagA", "TagB"},
		"a|b":            {"a|b"},
		"|":              {"|"},
		"|||":            {"|"},
		"TagA||":         {"TagA"},
		" ":              nil,
	} {
		s, err := messages.TagSubscription("T", expression)
		require.NoError(t, err, expression)
		require.Equal(t, want, s.TagsSet, "%q", expression)
		require.Len(t, s.CodeSet, len(want))
		for i, tag := range want {
			require.Equal(t, messages.JavaHash(tag), s.CodeSet[i])
		}
		require.Equal(t, "T", s.Topic)
		require.True(t, s.ByTag())
	}
	for _, expression := range []string{"||", "||||"} {
		_, err := messages.TagSubscription("T", expression)
		require.ErrorIs(t, err, messages.ErrSubscription, expression)
	}
}

func TestTagFilter(t *testing.T) {
	many := make([]string, 20)
	for i := range many {
		many[i] = fmt.Sprint("tag", i)
	}
	hash := func(tag string) int64 { return int64(messages.JavaHash(tag)) }
	for name, c := range map[string]struct {
		sub      messages.Subscription
		yes, not []int64 // empty: there is no filter
	}{
		"all":             {messages.Subscription{SubString: "*", CodeSet: []int32{1}}, nil, nil},
		"nothing said":    {messages.Subscription{}, nil, nil},
		"class filter":    {messages.Subscription{SubString: "x", ClassFilterMode: true}, nil, nil},
		"not by tag":      {messages.Subscription{SubString: "a > 5", ExpressionType: "SQL92"}, nil, nil},
		"codes":           {messages.Subscription{SubString: "A", CodeSet: []int32{7, -8}}, []int64{7, -8, 1<<32 | 7}, []int64{0, 65, 8}},
		"one code":        {messages.Subscription{SubString: "TagA", ExpressionType: "TAG", CodeSet: []int32{2598919}}, []int64{2598919, 1<<32 | 2598919}, []int64{2598920, 0}},
		"from expression": {messages.Subscription{SubString: "TagA || TagB"}, []int64{2598919, 2598920}, []int64{0, 2598921}},
		"many":            {messages.Subscription{SubString: strings.Join(many, "||")}, []int64{hash("tag0"), hash("tag19")}, []int64{hash("tag20"), 0}},
		"no tag in it":    {messages.Subscription{SubString: " "}, nil, []int64{0, 32}},
		"only bars":       {messages.Subscription{SubString: "||"}, nil, []int64{0}},
	} {
		t.Run(name, func(t *testing.T) {
			filter := c.sub.TagFilter()
			if len(c.yes)+len(c.not) == 0 {
				require.Nil(t, filter)
				return
			}
			for _, code := range c.yes {
				require.True(t, filter(code), code)
			}
			for _, code := range c.not {
				require.False(t, filter(code), code)
			}
		})
	}
}

func TestTagFilterDoesNotKeepTheCodes(t *testing.T) {
	codes := []int32{1, 2}
	filter := (&messages.Subscription{SubString: "x", CodeSet: codes}).TagFilter()
	codes[0], codes[1] = 8, 9
	require.True(t, filter(1))
	require.False(t, filter(8))
}

// The gateway turns one into the other by a conversion; this does not compile when they differ.
func TestWireTypesConvert(t *testing.T) {
	s := messages.Subscription(remoting.SubscriptionData{SubString: "A", SubVersion: 5})
	require.Equal(t, "A", remoting.SubscriptionData(s).SubString)
	q := messages.MessageQueue(remoting.MessageQueue{BrokerName: "b", QueueID: 3, Topic: "T"})
	require.Equal(t, "T", remoting.MessageQueue(q).Topic)
}

func TestGroupNames(t *testing.T) {
	for _, name := range []string{"g", "ns%g", "A|b_c-9", strings.Repeat("g", 255)} {
		require.NoError(t, messages.CheckGroupName(name), name)
	}
	for _, name := range []string{"", " ", "a b", "a@b", "a.b", "ä", strings.Repeat("g", 256)} {
		require.ErrorIs(t, messages.CheckGroupName(name), messages.ErrGroupName, name)
	}
}

func TestConsumerGroupClients(t *testing.T) {
	first, second, other := &messages.Client{ID: "a"}, &messages.Client{ID: "a"}, &messages.Client{ID: "b"}
	g := messages.ConsumerGroup{Clients: []*messages.Client{first, other, second}}
	require.Equal(t, []string{"a", "b", "a"}, g.ClientIDs(), "one for each connection")
	require.Same(t, second, g.Client("a"), "the newest")
	require.Same(t, other, g.Client("b"))
	require.Nil(t, g.Client("c"))
	at := time.UnixMilli(1700000000123)
	first.Seen(at)
	require.EqualValues(t, 1700000000123, first.LastUpdateMs())
}

func FuzzTagSubscription(f *testing.F) {
	for _, seed := range []string{"", "*", "a||b", "|||", " a || b ", "||"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expression string) {
		s, err := messages.TagSubscription("T", expression)
		if err != nil {
			require.Empty(t, strings.ReplaceAll(expression, "||", ""))
			return
		}
		filter := s.TagFilter()
		if s.SubString == "*" {
			require.Nil(t, filter)
			return
		}
		for _, tag := range s.TagsSet {
			require.NotEmpty(t, tag)
			require.NotContains(t, tag, "||")
			require.True(t, filter(int64(messages.JavaHash(tag))))
		}
	})
}

func BenchmarkTagFilter(b *testing.B) {
	for _, n := range []int{1, 8, 9, 100} {
		codes := make([]int32, n)
		for i := range codes {
			codes[i] = int32(i)
		}
		filter := (&messages.Subscription{SubString: "x", CodeSet: codes}).TagFilter()
		b.Run(fmt.Sprint("codes=", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				filterSink = filter(int64(n))
			}
		})
	}
}

var filterSink bool
