package console

import (
	"embed"
	"errors"
	"io/fs"
	"net/http"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/admin/guard"
	"github.com/actormq/actormq/system/admin/history"
	"github.com/actormq/actormq/system/ext/scrub"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
)

// Paths of the console: everything is below Home.
const (
	Home  = "/console/"
	Login = "/console/login"
)

// Config is what the console shows.
type Config struct {
	Root    *actor.RootContext // of the node's actors: required
	Store   *system.Store      // required
	Node    *gateway.Node      // required
	Guard   *guard.Guard       // required
	Version string             // of the program
	// Uncompress reads a body of a compression that the standard library lacks; nil: it is shown as it is.
	Uncompress func(kind int32, body []byte, limit int) ([]byte, error)
	Scrub      func() scrub.Status // nil: there is none
	Logger     zerolog.Logger
}

// Console serves the pages. Safe for concurrent use.
type Console struct {
	cfg     Config
	store   *system.Store
	b       *broker.Broker
	history *history.History
}

//go:embed static
var static embed.FS

// New starts what the console remembers, and returns it.
func New(cfg Config) (*Console, error) {
	c := &Console{cfg: cfg, store: cfg.Store, b: cfg.Node.Broker()}
	var err error
	c.history, err = history.Start(cfg.Root, history.Config{
		Store: cfg.Store, Broker: c.b, Connections: cfg.Node.Connections, Actors: c.standings, Logger: cfg.Logger,
	})
	return c, err
}

// Close ends what New has started.
func (c *Console) Close() error { return c.history.Close() }

// standings are the actors of the store and of the node.
func (c *Console) standings() []actors.Standing {
	return append(c.store.Actors(), actors.Standings(c.cfg.Root.ActorSystem())...)
}

// Routes adds the console's pages to a mux.
func (c *Console) Routes(mux *http.ServeMux) {
	inner := http.NewServeMux()
	for path, page := range map[string]func(*http.Request) (page, error){
		"GET /console/{$}": c.overview, "GET /console/topics": c.topics, "GET /console/topic": c.topic,
		"GET /console/groups": c.groups, "GET /console/group": c.group,
		"GET /console/messages": c.search, "GET /console/message": c.message,
		"GET /console/delayed": c.delayed, "GET /console/dead": c.dead,
		"GET /console/replicas": c.replicas, "GET /console/storage": c.storage, "GET /console/actors": c.actors,
	} {
		inner.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			p, err := page(r)
			c.show(w, r, p, err)
		})
	}
	inner.HandleFunc("GET /console/body", c.rawBody)
	inner.HandleFunc("POST /console/dead/resend", c.resend)
	inner.HandleFunc("POST /console/logout", func(w http.ResponseWriter, r *http.Request) {
		c.cfg.Guard.Leave(w)
		http.Redirect(w, r, Login, http.StatusSeeOther)
	})
	mux.Handle(Home, c.cfg.Guard.Protect(inner))
	mux.HandleFunc("GET "+Login, func(w http.ResponseWriter, r *http.Request) { c.login(w, r, http.StatusOK) })
	mux.HandleFunc("POST "+Login, c.enter)
	files, _ := fs.Sub(static, "static") // the folder is built in
	mux.Handle("GET /console/static/", http.StripPrefix("/console/static/", cached(http.FileServerFS(files))))
	mux.Handle("GET /{$}", http.RedirectHandler(Home, http.StatusFound))
}

// cached lets browsers keep the assets for a little: they change with the program only.
func cached(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "max-age=300")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		h.ServeHTTP(w, r)
	})
}

// failure is an error that is told to whoever asked, with a status.
type failure struct {
	status int
	text   string
}

func (f failure) Error() string { return f.text }

func missing(what string) error { return failure{http.StatusNotFound, what} }

func wrong(what string) error { return failure{http.StatusBadRequest, what} }

// statusOf is the HTTP status of an error.
func statusOf(err error) int {
	var f failure
	if errors.As(err, &f) {
		return f.status
	}
	return http.StatusInternalServerError
}
