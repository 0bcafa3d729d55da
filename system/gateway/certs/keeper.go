package certs

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/filewatch"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/vfs"
)

// Config is what a keeper of certificates is made of.
type Config struct {
	Name     string // of its actor; default "certificates"
	Disk     vfs.Disk
	Files    Files
	Interval time.Duration // at which the files are looked at; default 1 s
	Logger   zerolog.Logger
}

// Keeper has the certificates in force. Safe for concurrent use.
type Keeper struct {
	cfg       Config
	own       *tls.Certificate // used without files
	published atomic.Pointer[tls.Config]
	watcher   *filewatch.Watcher
	end       func() error
}

// Start reads the files and spawns the keeper and its watcher. It fails with ErrCertificates when the
// files can't be used.
func Start(root *actor.RootContext, cfg Config) (*Keeper, error) {
	cfg.Name = cmp.Or(cfg.Name, "certificates")
	k := &Keeper{cfg: cfg}
	var err error
	if cfg.Files.Cert == "" {
		if k.own, err = selfSigned(time.Now()); err != nil {
			return nil, err
		}
	}
	loaded, err := cfg.Files.load(cfg.Disk, k.own)
	if err != nil {
		return nil, err
	}
	k.published.Store(loaded)
	props := actor.PropsFromProducer(func() actor.Actor { return k }, actor.WithMailbox(mailbox.New(mailbox.Options{}).Producer()))
	pid, err := root.SpawnNamed(props, cfg.Name)
	if err != nil {
		return nil, fmt.Errorf("start the keeper of certificates: %w", err)
	}
	k.end = func() error { return root.PoisonFuture(pid).Wait() }
	k.watcher, err = filewatch.Start(root, cfg.Name+"-files", filewatch.Config{
		Disk: cfg.Disk, Files: cfg.Files.names(), Interval: cfg.Interval, Listener: actors.NewPeer(root, pid), Logger: cfg.Logger,
	})
	if err != nil {
		return nil, errors.Join(err, k.end())
	}
	return k, nil
}

// Close ends the actors.
func (k *Keeper) Close() error {
	if err := errors.Join(k.watcher.Close(), k.end()); err != nil {
		return fmt.Errorf("stop the keeper of certificates: %w", err)
	}
	return nil
}

// Server is the configuration for a listener: each connection is given what is in force when it begins.
func (k *Keeper) Server() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return k.published.Load(), nil },
	}
}

// Mutual are the configurations, in force now, of connections between peers that show the same certificate in both directions: for
// files with Trust and ClientAuthRequire.
func (k *Keeper) Mutual() (server, client *tls.Config) {
	server = k.published.Load()
	return server, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: server.Certificates, RootCAs: server.ClientCAs}
}

// Receive implements actor.Actor.
func (k *Keeper) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(messages.FilesChanged); !ok {
		return
	}
	loaded, err := k.cfg.Files.load(k.cfg.Disk, k.own)
	if err != nil {
		k.cfg.Logger.Error().Err(err).Msg("the certificates can't be used; those before stay in force")
		return
	}
	k.published.Store(loaded)
	k.cfg.Logger.Info().Strs("files", k.cfg.Files.names()).Msg("new certificates are in force")
}
