package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/admin/console"
	"github.com/actormq/actormq/system/admin/guard"
	"github.com/actormq/actormq/system/ext/scrub"
	"github.com/actormq/actormq/system/gateway"
)

// Config is what the port shows.
type Config struct {
	Listen  string        // host:port
	Store   *system.Store // required
	Node    *gateway.Node // nil: the store is not on the network
	Version string        // of the program, as metrics name it

	// Root is of the node's actors. nil, or a nil Node: there is no console.
	Root *actor.RootContext
	// Password is asked for by the console, and by what else shows or changes what not everybody should; see package guard.
	Password string
	// Uncompress reads bodies of messages that the standard library can't; see console.Config.
	Uncompress func(kind int32, body []byte, limit int) ([]byte, error)

	// Scrub tells what a scrub of the store has done; nil: there is none.
	Scrub func() scrub.Status

	Logger zerolog.Logger
}

// Server is an open admin port. What it shows may come and go (Show, Hide); meanwhile the process alone is shown, and is not ready.
type Server struct {
	listen   string
	listener net.Listener
	http     http.Server
	alone    http.Handler
	shown    atomic.Pointer[shown] // nil: there is no store
	ended    chan struct{}
}

// Limits of a request; profiles may take as long as they are asked to.
const (
	headerTimeout = 5 * time.Second
	idleTimeout   = time.Minute
	headerBytes   = 16 << 10
)

// Start opens the port and serves until Stop.
func Start(cfg Config) (*Server, error) {
	s, err := Open(cfg.Listen, cfg.Logger)
	if err != nil {
		return nil, err
	}
	if err := s.Show(cfg); err != nil {
		now, cancel := context.WithCancel(context.Background())
		cancel()
		return nil, errors.Join(err, s.Stop(now))
	}
	return s, nil
}

// Open opens the port of a process that has no store yet.
func Open(listen string, log zerolog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return nil, fmt.Errorf("open the admin port: %w", err)
	}
	s := &Server{listen: listen, listener: l, alone: alone(), ended: make(chan struct{})}
	s.http = http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: headerBytes}
	go func() {
		defer close(s.ended)
		if err := s.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Error().Err(err).Str("address", listen).Msg("the admin port has ended")
		}
	}()
	return s, nil
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if now := s.shown.Load(); now != nil && now.enter() {
		defer now.leave()
		now.handler.ServeHTTP(w, r)
		return
	}
	s.alone.ServeHTTP(w, r)
}

// alone is what a process without a store shows.
func alone() http.Handler {
	process := prometheus.NewRegistry()
	process.MustRegister(ofTheProcess()...)
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(process, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		say(w, http.StatusServiceUnavailable, "the store is being opened or closed")
	})
	return mux
}

// Show shows a store, until Hide. Config.Listen counts only for Start.
func (s *Server) Show(cfg Config) error {
	cfg.Listen = s.listen
	next := &shown{ended: make(chan struct{})}
	mux, err := next.routes(cfg)
	if err != nil {
		return err
	}
	next.handler = mux
	s.shown.Store(next)
	return nil
}

// Hide ends what Show has begun; the store may be closed then. Requests that run are awaited until the context ends.
func (s *Server) Hide(ctx context.Context) error {
	if now := s.shown.Swap(nil); now != nil {
		return now.end(ctx)
	}
	return nil
}

// Addr is where the port listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Stop closes the port. Requests that run are awaited until the context ends, then cut off.
func (s *Server) Stop(ctx context.Context) error {
	if err := s.http.Shutdown(ctx); err != nil {
		if err := s.http.Close(); err != nil {
			return fmt.Errorf("close the admin port: %w", err)
		}
	}
	<-s.ended
	return s.Hide(ctx)
}

// Registry returns a registry with all metrics of a node, for a program that serves them itself.
func Registry(cfg Config) *prometheus.Registry {
	r := prometheus.NewRegistry()
	r.MustRegister(append(ofTheProcess(), newCollector(cfg))...)
	return r
}

func ofTheProcess() []prometheus.Collector {
	return []prometheus.Collector{collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})}
}

func healthy(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, "ok") }

func (s *shown) routes(cfg Config) (*http.ServeMux, error) {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(Registry(cfg), promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	mux.HandleFunc("GET /healthz", healthy)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := unready(cfg); why != "" {
			say(w, http.StatusServiceUnavailable, why)
			return
		}
		say(w, http.StatusOK, "ok")
	})
	g := guard.New(guard.Config{Listen: cfg.Listen, Password: cfg.Password, Login: console.Login, Home: console.Home, Logger: cfg.Logger})
	inside := http.NewServeMux()
	inside.HandleFunc("GET /loglevel", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, zerolog.GlobalLevel().String()) })
	inside.HandleFunc("PUT /loglevel", func(w http.ResponseWriter, r *http.Request) { setLevel(cfg.Logger, w, r) })
	profiles(inside)
	mux.Handle("/loglevel", g.Protect(inside))
	mux.Handle("/debug/pprof/", g.Protect(inside))
	if cfg.Node == nil || cfg.Root == nil {
		return mux, nil
	}
	var err error
	s.console, err = console.New(console.Config{
		Root: cfg.Root, Store: cfg.Store, Node: cfg.Node, Guard: g, Version: cfg.Version, Uncompress: cfg.Uncompress, Scrub: cfg.Scrub, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, err
	}
	s.console.Routes(mux)
	return mux, nil
}

// unready says why no puts are sent here; empty when they may be.
func unready(cfg Config) string {
	if cfg.Node != nil && cfg.Node.Draining() {
		return "draining: the node is going to stop"
	}
	if err := cfg.Store.Writable(); err != nil && !errors.Is(err, system.ErrSlave) {
		return err.Error()
	}
	return ""
}

// say answers with one line.
func say(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintln(w, line)
}
