package offsets

import (
	"fmt"
	"time"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
)

// load reads the file. What can't be read is put aside, and the keeper begins with nothing: messages matter more than the
// progress of groups.
func (a *keeperActor) load() {
	var file metadata.OffsetTable
	report, err := metadata.LoadReport(a.cfg.Disk, a.cfg.Path, &file)
	if err == nil && report.From == "" && a.cfg.Before != "" {
		report, err = metadata.LoadReport(a.cfg.Disk, a.cfg.Before, &file)
	}
	if err != nil {
		a.loadErr = fmt.Errorf("load consumer offsets: %w", err)
		a.cfg.Logger.Error().Err(err).Msg("consumer offsets can't be read: every group begins anew")
		a.putAside()
	}
	if report.MainErr != nil && err == nil {
		a.cfg.Logger.Error().Err(report.MainErr).Str("from", report.From).
			Msg("the consumer offset file is damaged; its backup was loaded")
	}
	a.rest = rest{lmq: file.LMQOffsets, unknown: file.Unknown}
	if a.cfg.LightGroups {
		a.rest.lmq, a.rest.split = nil, true
		file.Offsets = withLight(file)
	}
	edit := actors.NewTable[key, *progress]().Edit()
	for name, queues := range file.Offsets {
		topic, group, _ := metadata.SplitOffsetKey(name)
		k := key{topic, group}
		if !k.legal() {
			a.cfg.Logger.Warn().Str("key", name).Msg("a consumer offset of no topic and group is left out")
			continue
		}
		if len(queues) == 0 {
			edit.Set(k, &progress{})
		}
		a.mergeOne(edit, k, queues, true)
	}
	a.published.Store(edit.Table())
}

// putAside renames what could not be read, so that no save overwrites it.
func (a *keeperActor) putAside() {
	aside, err := metadata.PutAside(a.cfg.Disk, a.cfg.Path, time.Now())
	if err != nil {
		a.cfg.Logger.Error().Err(err).Msg("an unreadable consumer offset file could not be put aside")
	}
	if len(aside) > 0 {
		a.cfg.Logger.Error().Strs("files", aside).Msg("unreadable consumer offset files were put aside")
	}
}

// whenSaved answers once everything up to now is in the file.
func (a *keeperActor) whenSaved(answer func(error)) {
	a.queued = append(a.queued, answer)
	a.startSave()
}

// startSave begins a save, unless one is running or there is nothing to save.
func (a *keeperActor) startSave() {
	if a.saving {
		return
	}
	a.asked, a.queued = a.queued, nil
	if !a.dirty {
		a.answerAsked(nil)
		return
	}
	a.dirty, a.saving = false, true
	t := a.published.Load()
	go func() {
		a.saved <- actors.Protect("save consumer offsets", func() error { return a.save(t) })
		a.port.PostUserMessage(offsetsSaved{})
	}()
}

func (a *keeperActor) save(t *table) error {
	if err := metadata.Save(a.cfg.Disk, a.cfg.Path, fileOf(t, a.rest)); err != nil {
		return fmt.Errorf("consumer offsets are not saved: %w", err)
	}
	return nil
}

func (a *keeperActor) finishSave(err error) {
	a.saving = false
	if err != nil {
		a.dirty = true
		a.cfg.Logger.Error().Err(err).Msg("saving consumer offsets failed; it is tried again")
	}
	a.answerAsked(err)
}

func (a *keeperActor) answerAsked(err error) {
	asked := a.asked
	a.asked = nil
	for _, answer := range asked {
		answer(err)
	}
}

// settle arms the timer while something is not in the file.
func (a *keeperActor) settle() {
	if !a.dirty || a.tick != nil {
		return
	}
	a.tick = time.AfterFunc(a.cfg.Interval, func() { a.port.PostUserMessage(messages.SaveOffsetsTick{}) })
	a.forgetResets()
}

func (a *keeperActor) forgetResets() {
	now := time.Now()
	for k, until := range a.resets {
		if now.After(until) {
			delete(a.resets, k)
		}
	}
}

// stopping saves what is left. It waits for the disk.
func (a *keeperActor) stopping() {
	if a.tick != nil {
		a.tick.Stop()
	}
	if a.saving {
		a.finishSave(<-a.saved)
	}
	a.asked, a.queued = a.queued, nil
	var err error
	if a.dirty {
		a.dirty = false
		if err = a.save(a.published.Load()); err != nil {
			a.cfg.Logger.Error().Err(err).Msg("saving consumer offsets failed at stop")
		}
	}
	a.answerAsked(err)
}
