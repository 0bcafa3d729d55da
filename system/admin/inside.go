package admin

import (
	"io"
	"net/http"
	"net/http/pprof"
	"strings"

	"github.com/rs/zerolog"
)

// setLevel changes the log level of the process, for as long as it runs. Loggers that are set to a higher level of their own keep it.
func setLevel(log zerolog.Logger, w http.ResponseWriter, r *http.Request) {
	const most = 16
	text, err := io.ReadAll(io.LimitReader(r.Body, most))
	level, bad := zerolog.ParseLevel(strings.TrimSpace(string(text)))
	if err != nil || bad != nil || level == zerolog.NoLevel {
		say(w, http.StatusBadRequest, "want trace, debug, info, warn, error or disabled")
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
