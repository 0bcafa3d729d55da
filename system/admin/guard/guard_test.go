package guard

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
)

func guarded(listen, password string) *Guard {
	return New(Config{Listen: listen, Password: password, Login: "/console/login", Home: "/console/", Logger: zerolog.Nop()})
}

// status is what a request is answered with.
func status(g *Guard, method, host string, change func(*http.Request)) int {
	r := httptest.NewRequest(method, "http://"+host+"/loglevel", nil)
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	g.Protect(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })).ServeHTTP(w, r)
	return w.Code
}

func basic(password string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth("", password) }
}

// TestWhoMayComeIn: on loopback whoever is on the machine, elsewhere who knows the password; without one nobody.
func TestWhoMayComeIn(t *testing.T) {
	open := guarded("127.0.0.1:10914", "")
	for host, want := range map[string]int{
		"127.0.0.1:10914": 200, "localhost:9": 200, "[::1]:10914": 200, "127.5.5.5": 200, "elsewhere:10914": 403, "10.0.0.7": 403, "127.0.0.1.elsewhere": 403,
	} {
		require.Equal(t, want, status(open, "GET", host, nil), host)
	}
	shut := guarded("0.0.0.0:10914", "")
	require.Equal(t, 403, status(shut, "GET", "127.0.0.1:10914", nil))
	require.Equal(t, 403, status(guarded(":10914", ""), "GET", "localhost", nil))
	locked := guarded("0.0.0.0:10914", "correct horse")
	require.Equal(t, 401, status(locked, "GET", "10.0.0.7:10914", nil))
	require.Equal(t, 200, status(locked, "GET", "broker.example:10914", basic("correct horse")))
	require.Equal(t, 401, status(guarded("127.0.0.1:10914", "correct horse"), "GET", "127.0.0.1:10914", nil), "asked for on loopback, too")
}

// TestGuessingIsSlow: after ten wrong passwords even the right one is not looked at for a while.
func TestGuessingIsSlow(t *testing.T) {
	g := guarded("0.0.0.0:1", "correct horse")
	now := time.Now()
	g.now = func() time.Time { return now }
	for range maxTries {
		require.Equal(t, 401, status(g, "GET", "x", basic("wrong")))
	}
	require.Equal(t, 401, status(g, "GET", "x", basic("correct horse")))
	now = now.Add(tryEvery)
	require.Equal(t, 200, status(g, "GET", "x", basic("correct horse")))
	require.Equal(t, 401, status(g, "GET", "x", basic("wrong")))
	require.Equal(t, 401, status(g, "GET", "x", basic("correct horse")), "one try in six seconds")
}

// TestGuessesInParallelAreNoMoreGuesses: whoever is being compared has been counted before the next one is let in.
func TestGuessesInParallelAreNoMoreGuesses(t *testing.T) {
	b := bucket{left: maxTries}
	now := time.Now()
	b.at = now
	var compared atomic.Int64
	var guesses sync.WaitGroup
	for range 10 * maxTries {
		guesses.Go(func() {
			b.try(now, func() bool {
				compared.Add(1)
				runtime.Gosched() // so that the others come meanwhile
				return false
			})
		})
	}
	guesses.Wait()
	require.EqualValues(t, maxTries, compared.Load())
}

// TestALoginEndsAndCannotBeMade: a cookie is good for twelve hours, and for this process.
func TestALoginEndsAndCannotBeMade(t *testing.T) {
	g := guarded("0.0.0.0:1", "correct horse")
	now := time.Now()
	g.now = func() time.Time { return now }
	enter := func(password string) (*http.Cookie, bool) {
		r := httptest.NewRequest("POST", "/console/login", strings.NewReader(url.Values{"password": {password}}.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		if !g.Enter(w, r) {
			return nil, false
		}
		return w.Result().Cookies()[0], true
	}
	_, ok := enter("wrong")
	require.False(t, ok)
	cookie, ok := enter("correct horse")
	require.True(t, ok)
	with := func(c http.Cookie) func(*http.Request) { return func(r *http.Request) { r.AddCookie(&c) } }
	require.Equal(t, 200, status(g, "GET", "x", with(*cookie)))
	other := guarded("0.0.0.0:1", "correct horse")
	require.Equal(t, 401, status(other, "GET", "x", with(*cookie)), "of another process")
	for _, bad := range []string{"", "AAAA", cookie.Value[1:], "B" + cookie.Value[1:], strings.Repeat("A", len(cookie.Value))} {
		forged := *cookie
		forged.Value = bad
		require.Equal(t, 401, status(g, "GET", "x", with(forged)), bad)
	}
	now = now.Add(cookieLife)
	require.Equal(t, 401, status(g, "GET", "x", with(*cookie)))
}

// TestAnotherSiteChangesNothing: browsers say where a request comes from.
func TestAnotherSiteChangesNothing(t *testing.T) {
	g := guarded("127.0.0.1:1", "")
	cross := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	require.Equal(t, 403, status(g, "PUT", "localhost", cross))
	require.Equal(t, 403, status(g, "POST", "localhost", func(r *http.Request) { r.Header.Set("Origin", "http://elsewhere") }))
	require.Equal(t, 200, status(g, "GET", "localhost", cross), "a link leads here")
	require.Equal(t, 200, status(g, "PUT", "localhost", nil), "no browser")
}

// TestRefusalsDoNotFillTheLog: a page of another site may ask as often as it likes.
func TestRefusalsDoNotFillTheLog(t *testing.T) {
	var log bytes.Buffer
	g := New(Config{Listen: "127.0.0.1:1", Login: "/console/login", Home: "/console/", Logger: zerolog.New(&log)})
	for range 100 * linesAMinute {
		require.Equal(t, 403, status(g, "GET", "elsewhere", nil))
	}
	require.Positive(t, log.Len())
	require.LessOrEqual(t, strings.Count(log.String(), "refused at the admin port"), 2*linesAMinute, "the minute may end meanwhile")
}
