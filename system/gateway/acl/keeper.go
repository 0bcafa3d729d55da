package acl

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/filewatch"
	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/actors/mailbox"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/segments/vfs"
	"github.com/actormq/actormq/system/gateway/broker"
)

// Config is what access control is made of.
type Config struct {
	Disk     vfs.Disk
	File     string        // plain_acl.yml; the files of the folder acl beside it that end in .yml or .yaml count too
	Interval time.Duration // at which the files are looked at; default 1 s
	Broker   *broker.Broker
	Logger   zerolog.Logger
}

// Keeper is running access control. Safe for concurrent use.
type Keeper struct {
	cfg       Config
	published atomic.Pointer[Rules]
	self      actors.Peer
	watcher   *filewatch.Watcher
	end       func() error
}

// change edits the rules' files.
type change struct {
	edit   func(*Rules) (text, error) // the file with its new content
	answer *messages.Answer[struct{}]
}

// Refuse answers with an error.
func (m change) Refuse(cause error) { m.answer.Refuse(cause) }

// Start reads the files, spawns the keeper under the name "access-rules" and its watcher. Without rules it fails: nobody could do
// anything.
func Start(root *actor.RootContext, cfg Config) (*Keeper, error) {
	k := &Keeper{cfg: cfg}
	rules, err := k.read()
	if err != nil {
		return nil, fmt.Errorf("access control: %w", err)
	}
	k.published.Store(rules)
	port := mailbox.New(mailbox.Options{OnPanic: k.panicked})
	props := actor.PropsFromProducer(func() actor.Actor { return k }, actor.WithMailbox(port.Producer()))
	pid, err := root.SpawnNamed(props, "access-rules")
	if err != nil {
		return nil, fmt.Errorf("start access control: %w", err)
	}
	k.self = actors.NewPeer(root, pid)
	k.end = func() error { return root.PoisonFuture(pid).Wait() }
	k.watcher, err = filewatch.Start(root, "access-rules-files", filewatch.Config{
		Disk: cfg.Disk, Files: []string{cfg.File, k.folder()}, Interval: cfg.Interval, Listener: k.self, Logger: cfg.Logger,
	})
	if err != nil {
		return nil, errors.Join(err, k.end())
	}
	k.self.Send(messages.FilesChanged{}) // what has changed before the watcher looked
	return k, nil
}

// Close ends the actors; the rules stay as they are.
func (k *Keeper) Close() error {
	if err := errors.Join(k.watcher.Close(), k.end()); err != nil {
		return fmt.Errorf("stop access control: %w", err)
	}
	return nil
}

// Rules are those in force.
func (k *Keeper) Rules() *Rules { return k.published.Load() }

// CheckBroker is the check of a broker's port.
func (k *Keeper) CheckBroker(r *gateway.Request) error {
	return k.Rules().CheckBroker(r.Command, r.Conn.Remote().Addr())
}

// CheckNames is the check of a name server's port.
func (k *Keeper) CheckNames(r *gateway.Request) error {
	return k.Rules().CheckNames(r.Command, r.Conn.Remote().Addr())
}

// Receive implements actor.Actor.
func (k *Keeper) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case messages.FilesChanged:
		k.reload()
	case change:
		m.answer.Complete(struct{}{}, k.change(m))
	}
}

func (k *Keeper) folder() string { return path.Join(path.Dir(k.cfg.File), "acl") }

// read reads all files and puts them together.
func (k *Keeper) read() (*Rules, error) {
	names := []string{k.cfg.File}
	entries, err := k.cfg.Disk.List(k.folder())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list %s: %w", k.folder(), err)
	}
	for _, e := range entries {
		if !e.Dir && (strings.HasSuffix(e.Name, ".yml") || strings.HasSuffix(e.Name, ".yaml")) {
			names = append(names, path.Join(k.folder(), e.Name))
		}
	}
	var texts []text
	for _, name := range names {
		content, err := metadata.ReadText(k.cfg.Disk, name)
		if err != nil {
			if name == k.cfg.File && len(names) > 1 && errors.Is(err, fs.ErrNotExist) {
				continue // the others do
			}
			return nil, err
		}
		texts = append(texts, text{name: name, content: content})
	}
	return rulesOf(texts)
}

func (k *Keeper) reload() {
	rules, err := k.read()
	if err != nil {
		k.cfg.Logger.Error().Err(err).Msg("the access rules can't be used; those before stay in force")
		return
	}
	if same(rules.texts, k.Rules().texts) {
		return
	}
	k.published.Store(rules)
	k.cfg.Logger.Info().Int("accounts", len(rules.accounts)).Int("files", len(rules.texts)).Msg("new access rules are in force")
}

func same(a, b []text) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].name != b[i].name || string(a[i].content) != string(b[i].content) {
			return false
		}
	}
	return true
}

// change edits the newest files, and writes only what can be used.
func (k *Keeper) change(m change) error {
	rules, err := k.read()
	if err != nil {
		return err
	}
	edited, err := m.edit(rules)
	if err != nil {
		return err
	}
	texts := append([]text(nil), rules.texts...)
	for i := range texts {
		if texts[i].name == edited.name {
			texts[i] = edited
		}
	}
	next, err := rulesOf(texts)
	if err != nil {
		return err
	}
	if err := metadata.WriteText(k.cfg.Disk, edited.name, edited.content); err != nil {
		return err
	}
	k.published.Store(next)
	k.cfg.Logger.Info().Str("file", edited.name).Msg("the access rules have been changed by a request")
	return nil
}

func (k *Keeper) panicked(reason any, stack []byte) {
	k.cfg.Logger.Error().Interface("panic", reason).Bytes("stack", stack).Msg("BUG: access control panicked")
}
