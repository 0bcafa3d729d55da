package system

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
)

// slogFactory lets the actor library log through the store's logger. What it says of ordinary life is debug output to us.
func slogFactory(log zerolog.Logger) func(*actor.ActorSystem) *slog.Logger {
	return func(*actor.ActorSystem) *slog.Logger { return slog.New(&slogHandler{log: log}) }
}

type slogHandler struct {
	log    zerolog.Logger
	prefix string
}

// levelOf maps the library's levels down by one: its Info is our Debug.
func levelOf(l slog.Level) zerolog.Level {
	switch {
	case l >= slog.LevelError:
		return zerolog.ErrorLevel
	case l >= slog.LevelWarn:
		return zerolog.WarnLevel
	case l >= slog.LevelInfo:
		return zerolog.DebugLevel
	}
	return zerolog.TraceLevel
}

// Enabled implements slog.Handler.
func (h *slogHandler) Enabled(_ context.Context, l slog.Level) bool {
	return h.log.GetLevel() <= levelOf(l) && h.log.GetLevel() != zerolog.Disabled
}

// Handle implements slog.Handler.
func (h *slogHandler) Handle(_ context.Context, r slog.Record) error {
	e := h.log.WithLevel(levelOf(r.Level))
	r.Attrs(func(a slog.Attr) bool {
		e = e.Str(h.name(a.Key), fmt.Sprint(a.Value))
		return true
	})
	e.Msg(r.Message)
	return nil
}

// name is an attribute's name in the line, which has some of its own: the library calls what a dead letter was "message".
func (h *slogHandler) name(key string) string {
	switch name := h.prefix + key; name {
	case zerolog.MessageFieldName, zerolog.LevelFieldName, zerolog.TimestampFieldName:
		return "actor_" + name
	default:
		return name
	}
}

// WithAttrs implements slog.Handler.
func (h *slogHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	c := h.log.With()
	for _, a := range attrs {
		c = c.Str(h.name(a.Key), fmt.Sprint(a.Value))
	}
	return &slogHandler{log: c.Logger(), prefix: h.prefix}
}

// WithGroup implements slog.Handler.
func (h *slogHandler) WithGroup(name string) slog.Handler {
	return &slogHandler{log: h.log, prefix: h.prefix + name + "."}
}

// ActorLogging is the option that lets an actor system of the caller's log through a zerolog logger, as the store's does.
func ActorLogging(log zerolog.Logger) actor.ConfigOption {
	return actor.WithLoggerFactory(slogFactory(log))
}
