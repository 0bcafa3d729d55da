package guard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/binary"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/actormq/actormq/messages"
)

// Config is what a guard goes by.
type Config struct {
	Listen   string // host:port of the admin port
	Password string // empty: none
	Login    string // path of the page to which a browser without a login is sent
	Home     string // path of what a login is good for; cookies go there only
	Logger   zerolog.Logger
}

// Guard stands before the pages of the admin port. Safe for concurrent use.
type Guard struct {
	cfg      Config
	loopback bool
	key      [sha256.Size]byte // of cookies; a login ends with the process
	site     *http.CrossOriginProtection
	tries    bucket
	now      func() time.Time
	noise    zerolog.Logger // of what anybody can cause: some lines a minute
}

const (
	// cookieName is the login's cookie, cookieLife how long it is good.
	cookieName = "actormq_login"
	cookieLife = 12 * time.Hour
	// linesAMinute bounds what refusals write to the log.
	linesAMinute = 10
)

// New returns a guard.
func New(cfg Config) *Guard {
	g := &Guard{cfg: cfg, site: http.NewCrossOriginProtection(), now: time.Now}
	g.tries.left = maxTries
	g.noise = cfg.Logger.Sample(&zerolog.BurstSampler{Burst: linesAMinute, Period: time.Minute})
	_, _ = rand.Read(g.key[:]) // it never fails
	host, _, err := net.SplitHostPort(cfg.Listen)
	g.loopback = err == nil && messages.IsLoopback(host)
	return g
}

// Locked tells whether a login is needed.
func (g *Guard) Locked() bool { return g.cfg.Password != "" }

// Protect lets only those to h who may.
func (g *Guard) Protect(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.site.Check(r); err != nil {
			g.refuse(w, r, "the request comes from a page of another site")
			return
		}
		switch {
		case g.Locked() && g.known(r):
			h.ServeHTTP(w, r)
		case g.Locked():
			g.ask(w, r)
		case !g.loopback:
			g.refuse(w, r, "on an address that is not loopback this needs a password: set adminPasswordFile")
		case !messages.IsLoopback(hostOf(r)):
			g.refuse(w, r, "without a password this is served to 127.0.0.1, ::1 and localhost only: set adminPasswordFile to use another name")
		default:
			h.ServeHTTP(w, r)
		}
	})
}

// hostOf is the host that a request asks for, without its port.
func hostOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.Host); err == nil {
		return host
	}
	return r.Host
}

func (g *Guard) refuse(w http.ResponseWriter, r *http.Request, why string) {
	g.noise.Warn().Str("from", r.RemoteAddr).Str("path", r.URL.Path).Str("why", why).Msg("refused at the admin port")
	http.Error(w, why, http.StatusForbidden)
}

// ask sends a browser to the login page, and tells anybody else that a password is wanted.
func (g *Guard) ask(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, g.cfg.Home) && strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Redirect(w, r, g.cfg.Login+"?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	w.Header().Set("WWW-Authenticate", `Basic realm="actormq", charset="UTF-8"`)
	http.Error(w, "a password is needed", http.StatusUnauthorized)
}

// known tells whether a request has a login's cookie, or the password.
func (g *Guard) known(r *http.Request) bool {
	if c, err := r.Cookie(cookieName); err == nil && g.valid(c.Value) {
		return true
	}
	_, password, ok := r.BasicAuth()
	return ok && g.correct(password)
}

// correct compares a password, a few times a minute: guessing is slow.
func (g *Guard) correct(password string) bool {
	return g.tries.try(g.now(), func() bool {
		given, want := sha256.Sum256([]byte(password)), sha256.Sum256([]byte(g.cfg.Password))
		return subtle.ConstantTimeCompare(given[:], want[:]) == 1
	})
}

// Enter gives a browser that knows the password a cookie, and tells whether it does. It is the target of the login form.
func (g *Guard) Enter(w http.ResponseWriter, r *http.Request) bool {
	if !g.Locked() || g.site.Check(r) != nil || !g.correct(r.PostFormValue("password")) {
		g.noise.Warn().Str("from", r.RemoteAddr).Msg("a login at the admin port has failed")
		return false
	}
	g.cfg.Logger.Info().Str("from", r.RemoteAddr).Msg("a login at the admin port")
	g.set(w, g.seal(g.now().Add(cookieLife)), int(cookieLife/time.Second))
	return true
}

// Leave takes the cookie back.
func (g *Guard) Leave(w http.ResponseWriter) { g.set(w, "", -1) }

func (g *Guard) set(w http.ResponseWriter, value string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: cookieName, Value: value, Path: g.cfg.Home, MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
}

// seal makes a cookie that is good until a time: the time, and what only this process can make of it.
func (g *Guard) seal(until time.Time) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(until.Unix()))
	return base64.RawURLEncoding.EncodeToString(g.sign(b))
}

func (g *Guard) sign(b []byte) []byte {
	m := hmac.New(sha256.New, g.key[:])
	m.Write(b)
	return m.Sum(b)
}

func (g *Guard) valid(cookie string) bool {
	const stamp = 8
	b, err := base64.RawURLEncoding.DecodeString(cookie)
	if err != nil || len(b) != stamp+sha256.Size || !hmac.Equal(b, g.sign(b[:stamp:stamp])) {
		return false
	}
	return g.now().Unix() < int64(binary.BigEndian.Uint64(b))
}
