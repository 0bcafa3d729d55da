package filewatch

import (
	"crypto/sha256"
	"fmt"
	"path"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
)

// Config is what a watcher is made of.
type Config struct {
	Disk     vfs.Disk
	Files    []string      // what is looked at; a name of a folder stands for the files in it. Missing ones are looked for
	Interval time.Duration // default 1 s
	Listener actors.Peer   // is told messages.FilesChanged
	Logger   zerolog.Logger
}

// maxFolderFiles bounds the files of a folder that are looked at.
const maxFolderFiles = 256

// tick: look again.
type tick struct{}

// Watcher is a running watcher.
type Watcher struct{ end func() error }

// Start remembers the files as they are and spawns the actor under a name.
func Start(root *actor.RootContext, name string, cfg Config) (*Watcher, error) {
	if cfg.Interval <= 0 {
		cfg.Interval = time.Second
	}
	a := &watcher{cfg: cfg}
	a.seen = a.look()
	props := actor.PropsFromProducer(func() actor.Actor { return a }, actor.WithMailbox(mailbox.New(mailbox.Options{}).Producer()))
	pid, err := root.SpawnNamed(props, name)
	if err != nil {
		return nil, fmt.Errorf("start the file watcher: %w", err)
	}
	return &Watcher{end: sync.OnceValue(func() error { return root.PoisonFuture(pid).Wait() })}, nil
}

// Close ends the actor.
func (w *Watcher) Close() error {
	if err := w.end(); err != nil {
		return fmt.Errorf("stop the file watcher: %w", err)
	}
	return nil
}

type watcher struct {
	cfg   Config
	seen  map[string][sha256.Size]byte
	timer *time.Timer
	self  actors.Peer
}

// Receive implements actor.Actor.
func (a *watcher) Receive(ctx actor.Context) {
	switch ctx.Message().(type) {
	case *actor.Started:
		a.self = actors.NewPeer(ctx.ActorSystem().Root, ctx.Self())
		a.timer = a.self.After(a.cfg.Interval, tick{})
	case tick:
		a.tick()
	case *actor.Stopping:
		a.timer.Stop()
	}
}

func (a *watcher) tick() {
	now := a.look()
	changed := len(now) != len(a.seen)
	for name, sum := range now {
		old, there := a.seen[name]
		changed = changed || !there || old != sum
	}
	a.seen = now
	if changed {
		a.cfg.Listener.Send(messages.FilesChanged{})
	}
	a.timer = a.self.After(a.cfg.Interval, tick{})
}

// look returns the checksums of the files that can be read; that one can't is seen as its absence.
func (a *watcher) look() map[string][sha256.Size]byte {
	sums := map[string][sha256.Size]byte{}
	for _, name := range a.cfg.Files {
		for _, file := range a.filesOf(name) {
			text, err := metadata.ReadText(a.cfg.Disk, file)
			if err == nil {
				sums[file] = sha256.Sum256(text)
			}
		}
	}
	return sums
}

func (a *watcher) filesOf(name string) []string {
	entry, err := a.cfg.Disk.Stat(name)
	if err != nil || !entry.Dir {
		return []string{name}
	}
	entries, err := a.cfg.Disk.List(name)
	if err != nil {
		return nil
	}
	var files []string
	for _, e := range entries[:min(len(entries), maxFolderFiles)] {
		files = append(files, path.Join(name, e.Name))
	}
	return files
}
