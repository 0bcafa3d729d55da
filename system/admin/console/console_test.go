package console_test

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/admin/console"
	"github.com/actormq/actormq/system/admin/guard"
	"github.com/actormq/actormq/system/ext/scrub"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/node"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a console before a node.
type world struct {
	t    *testing.T
	node *node.Node
	b    *broker.Broker
	mux  *http.ServeMux
}

func run(t *testing.T, password string) *world {
	t.Helper()
	n := node.Start(t, func(o *system.Options, _ *gateway.Config) { o.FlushDiskType = system.SyncFlush })
	sys := fixture.System(t, actor.WithDeadLetterThrottleInterval(time.Millisecond))
	actors.TakeCensus(sys)
	c, err := console.New(console.Config{
		Root: sys.Root, Store: n.Store, Node: n.Gateway, Version: "1.2.3", Scrub: func() scrub.Status { return scrub.Status{Passes: 1, Messages: 4321, Damaged: 2} }, Logger: zerolog.Nop(),
		Guard: guard.New(guard.Config{Listen: "127.0.0.1:1", Password: password, Login: console.Login, Home: console.Home}),
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	w := &world{t: t, node: n, b: n.Gateway.Broker(), mux: http.NewServeMux()}
	c.Routes(w.mux)
	return w
}

// do sends a request as a browser on the machine does.
func (w *world) do(method, path string, form url.Values, change ...func(*http.Request)) *http.Response {
	w.t.Helper()
	r := httptest.NewRequest(method, "http://localhost:10914"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, fn := range change {
		fn(r)
	}
	answer := httptest.NewRecorder()
	w.mux.ServeHTTP(answer, r)
	return answer.Result()
}

// page is the text of a page that is there.
func (w *world) page(path string) string {
	w.t.Helper()
	answer := w.do("GET", path, nil)
	text, err := io.ReadAll(answer.Body)
	require.NoError(w.t, err)
	require.Equal(w.t, http.StatusOK, answer.StatusCode, "%s: %s", path, text)
	require.Contains(w.t, answer.Header.Get("Content-Security-Policy"), "default-src 'none'", path)
	return string(text)
}

func (w *world) put(topic string, m messages.Message) messages.PutResult {
	w.t.Helper()
	if _, ok := w.b.Topics.Lookup(topic); !ok {
		require.NoError(w.t, w.b.Topics.Update(w.t.Context(), metadata.TopicConfig{TopicName: topic, ReadQueueNums: 2, WriteQueueNums: 2, Perm: 6}))
	}
	m.Topic = topic
	got, err := w.node.Store.Put(w.t.Context(), &m)
	require.NoError(w.t, err)
	require.NoError(w.t, w.node.Store.AwaitDispatched(w.t.Context()))
	return got
}

func properties(pairs ...string) messages.Properties {
	all := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		all[pairs[i]] = pairs[i+1]
	}
	return messages.PropertiesOf(all)
}

// hostile is what a client may write wherever it may write anything.
const hostile = `<script>alert("x")</script>'"&{{.}}`

// TestEveryPageSaysWhatThereIs: each page of the menu, filled, with what belongs on it.
func TestEveryPageSaysWhatThereIs(t *testing.T) {
	w := run(t, "")
	at := w.put("orders", messages.Message{Body: []byte(`{"cups":2}`), Properties: properties(messages.PropertyKeys, "4711", messages.PropertyTags, "new")})
	w.put("orders", messages.Message{QueueID: 1, Body: []byte("tea")})
	w.put("later", messages.Message{Body: []byte("x"), Properties: properties(messages.PropertyDelay, "18")})
	require.NoError(t, w.b.Offsets.CommitWait(t.Context(), "billing", messages.QueueKey{Topic: "orders"}, 1))
	_, err := w.b.Topics.EnsureDLQ(t.Context(), "billing")
	require.NoError(t, err)
	w.put("%DLQ%billing", messages.Message{Body: []byte("dead"), Properties: properties(messages.PropertyRetryTopic, "orders")})
	require.Equal(t, 0, int(at.PhysicalOffset))
	require.Eventually(t, func() bool { return len(w.node.Store.Cleaning().Disks) > 0 }, time.Minute, time.Millisecond, "the disks are looked at")
	for path, parts := range map[string][]string{
		"/console/":                                               {"Messages in", "Time of a send", "billing", "takes nothing that was acknowledged", "<svg", "1.2.3", "takes messages"},
		"/console/topics":                                         {"orders", "later", "read, write"},
		"/console/topics?all=1&find=TBW":                          {"TBW102", "system"},
		"/console/topics?find=none-of-that-name":                  {"There is none of that name"},
		"/console/topic?name=orders":                              {"Queues", "billing", "read, write"},
		"/console/groups":                                         {"billing"},
		"/console/group?name=billing":                             {"orders", "Committed", "Lag", "<svg", "nobody consumes"},
		"/console/messages":                                       {"By key or time", "By id"},
		"/console/messages?topic=orders":                          {"4711", "tea"},
		"/console/messages?topic=orders&queue=1":                  {"tea"},
		"/console/messages?topic=orders&key=4711":                 {"4711", "cups"},
		"/console/messages?topic=orders&key=4712":                 {"Nothing was found"},
		"/console/messages?topic=nobodys":                         {"there is no topic"},
		"/console/messages?topic=orders&from=tomorrow":            {"want a time like"},
		"/console/messages?topic=orders&from=2020-01-31T13:00:00": {"tea", "4711"},
		"/console/messages?id=" + id(w, at):                       {"4711", "cups"},
		"/console/messages?id=0123":                               {"no offset message id"},
		"/console/message?at=0":                                   {"4711", "TAGS", "Flushed", "Dispatched", "Consumed by billing", "done", "&#34;cups&#34;: 2"},
		"/console/message?at=0&as=hex":                            {"7b 22 63 75 70 73 22 3a"},
		"/console/delayed":                                        {"<td>2h</td>", "later"},
		"/console/dead":                                           {"billing"},
		"/console/dead?group=billing":                             {"orders", "dead", "Send again"},
		"/console/replicas":                                       {"ASYNC_MASTER", "Nobody follows this node"},
		"/console/storage":                                        {"SYNC_FLUSH", "Retention", "commit log", "<dd>72h</dd>", "2 damaged", "4\u202f321 messages compared"},
		"/console/actors":                                         {"commitlog-writer", "queue-builder", "history", "Restarts"},
	} {
		text := w.page(path)
		for _, part := range parts {
			require.Contains(t, text, part, path)
		}
	}
}

func id(w *world, at messages.PutResult) string {
	m, err := w.node.Store.MessageAt(at.PhysicalOffset)
	require.NoError(w.t, err)
	return m.OffsetMessageID()
}

// TestNothingThatClientsWriteIsMarkup: names, keys, properties and bodies are text on every page, whatever stands in them.
func TestNothingThatClientsWriteIsMarkup(t *testing.T) {
	w := run(t, "")
	at := w.put("shop", messages.Message{Body: []byte(hostile), Properties: properties(messages.PropertyKeys, hostile, messages.PropertyTags, hostile, "own", hostile)})
	_, err := w.b.Topics.EnsureDLQ(t.Context(), "g")
	require.NoError(t, err)
	w.put("%DLQ%g", messages.Message{Body: []byte(hostile), Properties: properties(messages.PropertyRetryTopic, hostile)})
	w.put("shop", messages.Message{Body: []byte(hostile), Properties: properties(messages.PropertyDelay, "18", messages.PropertyRealTopic, hostile)})
	require.NoError(t, w.b.Offsets.CommitWait(t.Context(), hostile, messages.QueueKey{Topic: "shop"}, 1)) // as a client may: it is not checked
	q := url.QueryEscape(hostile)
	paths := []string{
		"/console/", "/console/topic?name=shop", "/console/groups", "/console/group?name=" + q, "/console/messages?topic=shop",
		"/console/messages?topic=" + q + "&key=" + q + "&from=" + q + "&queue=" + q + "&id=" + q, "/console/delayed", "/console/dead", "/console/dead?group=g&done=" + q,
		"/console/topics?find=" + q, fmt.Sprintf("/console/message?at=%d&as=%s", at.PhysicalOffset, q), fmt.Sprintf("/console/message?at=%d&as=text", at.PhysicalOffset),
	}
	seen := 0
	for _, path := range paths {
		text := w.page(path)
		require.NotContains(t, text, "<script>alert", path)
		require.NotContains(t, text, `alert("x")`, path)
		seen += strings.Count(text, "&lt;script&gt;alert")
	}
	require.Greater(t, seen, 8, "it is shown, as text")
	for _, path := range []string{"/console/topic?name=" + q, "/console/dead?group=" + q, "/console/group?name=" + q + "x"} {
		answer := w.do("GET", path, nil)
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, http.StatusNotFound, answer.StatusCode)
		require.NotContains(t, string(text), "<script>alert")
	}
}

// TestBodiesAreDecoded: text, JSON, hex, compressed ones, and what only looks like one of them.
func TestBodiesAreDecoded(t *testing.T) {
	w := run(t, "")
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	_, err := z.Write([]byte(strings.Repeat("pressed ", 100)))
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for _, c := range []struct {
		name  string
		m     messages.Message
		parts []string
	}{
		{"text", messages.Message{Body: []byte("gr\u00fc\u00df Gott\n")}, []string{"gr\u00fc\u00df Gott", ">text</a>"}},
		{"binary", messages.Message{Body: []byte{0, 1, 2, 0xff}}, []string{"00 01 02 ff"}},
		{"JSON", messages.Message{Body: []byte(`[1,{"a":null}]`)}, []string{"&#34;a&#34;: null", ">json</a>"}},
		{"no JSON", messages.Message{Body: []byte(`{"a":`)}, []string{"{&#34;a&#34;:"}},
		{"empty", messages.Message{}, []string{"0 bytes"}},
		{"zlib", messages.Message{Body: packed.Bytes(), SysFlag: messages.SysFlagCompressed}, []string{"pressed pressed", "by zlib", "800 bytes"}},
		{"broken zlib", messages.Message{Body: packed.Bytes()[:20], SysFlag: messages.SysFlagCompressed}, []string{"It could not be uncompressed"}},
		{"zstd", messages.Message{Body: []byte("xx"), SysFlag: messages.SysFlagCompressed | messages.SysFlagCompressionZSTD}, []string{"not read here"}},
		{"long", messages.Message{Body: bytes.Repeat([]byte("\u00fc"), 50_000)}, []string{"Only the beginning is shown"}},
	} {
		text := w.page(fmt.Sprintf("/console/message?at=%d", w.put("bodies", c.m).PhysicalOffset))
		for _, part := range c.parts {
			require.Contains(t, text, part, c.name)
		}
	}
	answer := w.do("GET", "/console/body?at=0", nil)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "gr\u00fc\u00df Gott\n", string(text))
	require.Equal(t, "application/octet-stream", answer.Header.Get("Content-Type"))
	require.Contains(t, answer.Header.Get("Content-Disposition"), "attachment")
}

// TestASearchShowsTheNewestOfAllQueues, or the first from a time on.
func TestASearchShowsTheNewestOfAllQueues(t *testing.T) {
	w := run(t, "")
	const shown = 64
	for i := range shown + 10 {
		w.put("Orders", messages.Message{QueueID: int32(i % 2), Body: fmt.Appendf(nil, "body-%d-", i)})
	}
	newest := w.page("/console/messages?topic=Orders")
	require.Equal(t, shown, strings.Count(newest, "body-"))
	require.Contains(t, newest, fmt.Sprintf("body-%d-", shown+9))
	first := w.page("/console/messages?topic=Orders&from=2020-01-01T00:00")
	require.Equal(t, shown, strings.Count(first, "body-"))
	require.Contains(t, first, "body-0-")
	require.NotContains(t, first, fmt.Sprintf("body-%d-", shown+9))
	require.Contains(t, first, "There are more")
}

// TestDeadLettersAreSentAgain: all that were not yet, once; or one, as often as somebody asks.
func TestDeadLettersAreSentAgain(t *testing.T) {
	w := run(t, "")
	_, err := w.b.Topics.EnsureDLQ(t.Context(), "billing")
	require.NoError(t, err)
	for i := range 3 {
		w.put("%DLQ%billing", messages.Message{
			Body: fmt.Appendf(nil, "letter %d", i), ReconsumeTimes: 16,
			Properties: properties(messages.PropertyRetryTopic, "orders", messages.PropertyMaxReconsumeTimes, "16", messages.PropertyKeys, "k"),
		})
	}
	retry := messages.QueueKey{Topic: "%RETRY%billing"}
	again := func(form url.Values) string {
		form.Set("group", "billing")
		answer := w.do("POST", "/console/dead/resend", form)
		require.Equal(t, http.StatusSeeOther, answer.StatusCode)
		require.NoError(t, w.node.Store.AwaitDispatched(t.Context()))
		return w.page(answer.Header.Get("Location"))
	}
	require.Contains(t, w.page("/console/dead?group=billing"), "3 have not been sent again")
	require.Contains(t, again(url.Values{}), "3 sent again.")
	require.EqualValues(t, 3, w.node.Store.MaxOffset(retry))
	got, err := w.node.Store.Get(t.Context(), messages.GetMessage{Queue: retry, MaxMessages: 1})
	require.NoError(t, err)
	require.Contains(t, string(got.Records[0]), "letter 0")
	got.Release()
	require.Contains(t, again(url.Values{}), "0 sent again.")
	require.Contains(t, again(url.Values{"at": {"1"}}), "1 sent again.")
	require.EqualValues(t, 4, w.node.Store.MaxOffset(retry))
	require.Contains(t, again(url.Values{"at": {"9"}}), "it is not there any more")
	require.Contains(t, w.page("/console/dead?group=billing"), "All have been sent again")
	answer := w.do("POST", "/console/dead/resend", url.Values{"group": {"nobody"}})
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
}

// TestWithAPasswordOneLogsIn, and out again; nothing is shown or done before.
func TestWithAPasswordOneLogsIn(t *testing.T) {
	w := run(t, "correct horse")
	answer := w.do("GET", "/console/topics?find=a", nil)
	require.Equal(t, http.StatusSeeOther, answer.StatusCode)
	require.Equal(t, "/console/login?next=%2Fconsole%2Ftopics%3Ffind%3Da", answer.Header.Get("Location"))
	require.Equal(t, http.StatusOK, w.do("GET", answer.Header.Get("Location"), nil).StatusCode)
	require.Equal(t, http.StatusOK, w.do("GET", "/console/static/console.css", nil).StatusCode, "of the login page")
	require.Equal(t, http.StatusForbidden, w.do("POST", "/console/login", url.Values{"password": {"wrong"}}).StatusCode)
	answer = w.do("POST", "/console/login", url.Values{"password": {"correct horse"}, "next": {"https://elsewhere/console/"}})
	require.Equal(t, console.Home, answer.Header.Get("Location"), "nowhere else")
	answer = w.do("POST", "/console/login", url.Values{"password": {"correct horse"}, "next": {"/console/topics?find=a"}})
	require.Equal(t, "/console/topics?find=a", answer.Header.Get("Location"))
	cookie := answer.Cookies()[0]
	require.True(t, cookie.HttpOnly)
	require.Equal(t, http.SameSiteStrictMode, cookie.SameSite)
	with := func(r *http.Request) { r.AddCookie(cookie) }
	require.Equal(t, http.StatusOK, w.do("GET", "/console/topics", nil, with).StatusCode)
	answer = w.do("POST", "/console/logout", url.Values{}, with)
	require.Negative(t, answer.Cookies()[0].MaxAge)
	require.Equal(t, http.StatusSeeOther, w.do("POST", "/console/dead/resend", url.Values{"group": {"g"}}).StatusCode, "to the login")
}

// TestAnotherSitesPageDoesNothing: a form there that is sent to the console is refused (CSRF), with and without a login.
func TestAnotherSitesPageDoesNothing(t *testing.T) {
	w := run(t, "")
	for _, header := range []string{"cross-site", "same-site"} {
		answer := w.do("POST", "/console/dead/resend", url.Values{"group": {"g"}}, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", header) })
		require.Equal(t, http.StatusForbidden, answer.StatusCode)
	}
	answer := w.do("POST", "/console/dead/resend", url.Values{"group": {"g"}}, func(r *http.Request) {
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set("Origin", "https://elsewhere")
	})
	require.Equal(t, http.StatusForbidden, answer.StatusCode, "an old browser")
	answer = w.do("GET", "/console/", nil, func(r *http.Request) { r.Host = "elsewhere:10914" })
	require.Equal(t, http.StatusForbidden, answer.StatusCode, "a name that somebody has pointed here")
}

// TestPagesLoadNothingFromElsewhere: no other host, no inline script or style, which the policy of the pages forbids.
func TestPagesLoadNothingFromElsewhere(t *testing.T) {
	all, err := os.ReadDir("templates")
	require.NoError(t, err)
	for _, f := range all {
		text, err := os.ReadFile("templates/" + f.Name())
		require.NoError(t, err)
		for _, bad := range []string{"http:", "https:", "style=", "<style", "onclick", "onload", "javascript:"} {
			require.NotContains(t, string(text), bad, f.Name())
		}
	}
}

// TestStopEndsTheHistory: a console that is closed leaves no actor.
func TestStopEndsTheHistory(t *testing.T) {
	n := node.Start(t, nil)
	sys := fixture.System(t, actor.WithDeadLetterThrottleInterval(time.Millisecond))
	actors.TakeCensus(sys)
	c, err := console.New(console.Config{Root: sys.Root, Store: n.Store, Node: n.Gateway, Guard: guard.New(guard.Config{}), Logger: zerolog.Nop()})
	require.NoError(t, err)
	require.Len(t, actors.Standings(sys), 1)
	require.NoError(t, c.Close())
	require.Empty(t, actors.Standings(sys))
}

// TestTheTreeOfActors: children below their parents, in the order in which people count, and no more than fit.
func TestTheTreeOfActors(t *testing.T) {
	w := run(t, "")
	text := w.page("/console/actors")
	last := -1
	for _, name := range []string{"the store&#39;s actors", "delay-scheduler", "level-1<", "level-2<", "level-10<", "pull-hold", "the node&#39;s actors", ">history"} {
		at := strings.Index(text, name)
		require.Greater(t, at, last, name)
		last = at
	}
}
