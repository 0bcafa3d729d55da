package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/admin/console/plot"
)

//go:embed templates
var files embed.FS

// page is what a template is filled with.
type page struct {
	Template string
	Title    string
	Nav      string // which entry of the menu is the current one
	Data     any
}

// frame is what stands around each page.
type frame struct {
	page
	Menu                     []entry
	Broker, Cluster, Version string
	State, Why               string // ok, warn or bad; in words
	Flush                    string
	CanLeave                 bool
	Now                      time.Time
}

type entry struct{ Name, Path, Label string }

var menu = []entry{
	{"overview", "/console/", "Overview"}, {"topics", "/console/topics", "Topics"}, {"groups", "/console/groups", "Groups"},
	{"messages", "/console/messages", "Messages"}, {"delayed", "/console/delayed", "Delayed"}, {"dead", "/console/dead", "Dead letters"},
	{"replicas", "/console/replicas", "Replicas"}, {"storage", "/console/storage", "Storage"}, {"actors", "/console/actors", "Actors"},
}

// templates are parsed by whoever shows the first page: most processes show none.
var templates = sync.OnceValue(parse)

// parse reads each page together with the frame around it.
func parse() map[string]*template.Template {
	all := map[string]*template.Template{}
	base := template.Must(template.New("").Funcs(functions).ParseFS(files, "templates/frame.html"))
	pages, err := files.ReadDir("templates")
	if err != nil {
		panic(err) // it is built in
	}
	for _, f := range pages {
		name := strings.TrimSuffix(f.Name(), ".html")
		all[name] = template.Must(template.Must(base.Clone()).ParseFS(files, "templates/"+f.Name()))
	}
	return all
}

var functions = template.FuncMap{
	"count":   count,
	"bytes":   func(n int64) string { return plot.Bytes.Text(float64(n)) },
	"rate":    func(v float64) string { return plot.PerSecond.Text(v) },
	"unit":    func(u plot.Unit, v float64) string { return u.Text(v) },
	"time":    func(ms int64) string { return clock(time.UnixMilli(ms)) },
	"ago":     func(ms int64) string { return ago(time.Since(time.UnixMilli(ms))) },
	"span":    ago,
	"brief":   brief,
	"percent": func(v float64) string { return strconv.FormatFloat(v, 'f', 1, 64) + " %" },
	"add":     func(a, b int) int { return a + b },
}

// count writes a whole number with a thin space between thousands.
func count(v any) string {
	text := fmt.Sprint(v)
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "\u202f" + text[i:]
	}
	return sign + text
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05.000") + "Z" }

// brief writes a duration that somebody has set: 2h, not 2h0m0s.
func brief(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// ago writes how long something is, roughly.
func ago(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "0 s"
	case d < time.Minute:
		return strconv.Itoa(int(d.Seconds())) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < day:
		return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%d d %d h", int(d/day), int(d%day/time.Hour))
}

// around is the frame of this moment.
func (c *Console) around(p page) frame {
	f := frame{
		page: p, Menu: menu, Broker: c.b.BrokerName, Cluster: c.b.ClusterName, Version: c.cfg.Version, Now: time.Now(),
		State: "ok", Why: "takes messages", Flush: "a power cut takes what is not flushed", CanLeave: c.cfg.Guard.Locked(),
	}
	st := c.store.Status()
	if c.store.Options().FlushDiskType == system.SyncFlush {
		f.Flush = "what is acknowledged is on the disk"
	}
	switch {
	case st.Cause != nil && st.Role.String() != "SLAVE":
		f.State, f.Why = "bad", "refuses messages: "+st.Cause.Error()
	case st.Cause != nil:
		f.Why = "slave: follows its master"
	case c.cfg.Node.Draining():
		f.State, f.Why = "warn", "sends producers elsewhere: it is going to stop"
	}
	return f
}

// secure sets what keeps a page from doing anything but what it is made for.
func secure(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "+
		"form-action 'self'; frame-ancestors 'none'; base-uri 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// show writes a page, or says what went wrong in one.
func (c *Console) show(w http.ResponseWriter, r *http.Request, p page, err error) {
	status := http.StatusOK
	if err != nil {
		status = statusOf(err)
		p = page{Template: "failure", Title: "Not found", Nav: p.Nav, Data: err.Error()}
		if status != http.StatusNotFound {
			p.Title = "That did not work"
		}
		c.cfg.Logger.Debug().Err(err).Str("path", r.URL.Path).Msg("a page could not be shown")
	}
	c.write(w, status, p)
}

func (c *Console) write(w http.ResponseWriter, status int, p page) {
	var out bytes.Buffer
	if err := templates()[p.Template].ExecuteTemplate(&out, "frame", c.around(p)); err != nil {
		c.cfg.Logger.Error().Err(err).Str("page", p.Template).Msg("BUG: a template failed")
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	secure(w)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(out.Bytes()) // nobody is left to tell
}

// login shows the form; next is where to go then.
func (c *Console) login(w http.ResponseWriter, r *http.Request, status int) {
	c.write(w, status, page{Template: "login", Title: "Log in", Data: map[string]any{"Next": next(r), "Failed": status != http.StatusOK}})
}

// next is the page of the console that the login leads to, and nothing else.
func next(r *http.Request) string {
	to := r.FormValue("next")
	if !strings.HasPrefix(to, Home) || strings.HasPrefix(to, Login) || strings.ContainsAny(to, "\\\r\n") {
		return Home
	}
	return to
}

func (c *Console) enter(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, 8<<10)
	if !c.cfg.Guard.Enter(w, r) {
		c.login(w, r, http.StatusForbidden)
		return
	}
	http.Redirect(w, r, next(r), http.StatusSeeOther)
}

// spread puts values that were taken at times into so many equal parts of a span that ends at end; of several in one part
// the greatest counts. A part without any is a gap, unless it is just one between two that have some: times are not so even.
func spread(n int, end time.Time, span time.Duration, times []time.Time, values []float64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = math.NaN()
	}
	for i, at := range times {
		back := end.Sub(at)
		slot := n - 1 - int(back*time.Duration(n)/span)
		if back < 0 || slot < 0 || math.IsNaN(values[i]) {
			continue
		}
		if math.IsNaN(out[slot]) || values[i] > out[slot] {
			out[slot] = values[i]
		}
	}
	for i := 1; i < n-1; i++ {
		if math.IsNaN(out[i]) && !math.IsNaN(out[i+1]) {
			out[i] = out[i-1]
		}
	}
	return out
}
