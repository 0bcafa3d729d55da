package admin

import (
	"io"
	"net/http"
	"net/http/pprof"
	"slices"
	"strings"

	"github.com/rs/zerolog"
)

// levels are the names that a log level may have.
var levels = []string{"trace", "debug", "info", "warn", "error", "disabled"}

// setLevel changes the log level of the process, for as long as it runs. Loggers that are set to a higher level of their own keep it.
func setLevel(log zerolog.Logger, w http.ResponseWriter, r *http.Request) {
	const most = 16
	text, err := io.ReadAll(io.LimitReader(r.Body, most))
	name := strings.ToLower(strings.TrimSpace(string(text)))
	level, bad := zerolog.ParseLevel(name)
	if err != nil || bad != nil || !slices.Contains(levels, name) { // the library takes numbers, too
		say(w, http.StatusBadRequest, "want "+strings.Join(levels, ", "))
		return
	}
	old := zerolog.GlobalLevel()
	zerolog.SetGlobalLevel(level)
	log.WithLevel(zerolog.NoLevel).Stringer("from", old).Stringer("to", level).Msg("the log level is changed")
	say(w, http.StatusOK, level.String())
}

// profiles adds the pages of net/http/pprof.
func profiles(mux *http.ServeMux) {
	mux.HandleFunc("GET /debug/pprof/", pprof.Index)
	mux.HandleFunc("GET /debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("GET /debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
}
