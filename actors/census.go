package actors

import (
	"cmp"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/extensions"
)

// Counted is a mailbox that can be looked at from outside, by any goroutine.
type Counted interface {
	UserMessageCount() int // messages that wait
	Handled() int64        // messages that have been handled; up to 64 may be missing
	Panics() int64         // how often the actor has panicked, and gone on
}

// Standing is how an actor does at one moment.
type Standing struct {
	ID      string // of its PID: a path
	Waiting int
	Handled int64
	Panics  int64
}

var censusID = extensions.NextExtensionID()

// census is the list of an actor system's actors.
type census struct {
	byID sync.Map // of Counted, by the PID's id
}

// ExtensionID implements extensions.Extension.
func (*census) ExtensionID() extensions.ExtensionID { return censusID }

// TakeCensus lets the actors that an actor system spawns from now on be listed by Standings. Call it once, before the first spawn.
func TakeCensus(system *actor.ActorSystem) { system.Extensions.Register(&census{}) }

func censusOf(system *actor.ActorSystem) *census {
	c, _ := system.Extensions.Get(censusID).(*census)
	return c
}

// Enter lists an actor. Its mailbox calls it when it is spawned.
func Enter(system *actor.ActorSystem, pid *actor.PID, mailbox Counted) {
	if c := censusOf(system); c != nil {
		c.byID.Store(pid.GetId(), mailbox)
	}
}

// Leave takes an actor from the list. Its mailbox calls it when the actor stops.
func Leave(system *actor.ActorSystem, pid *actor.PID) {
	if c := censusOf(system); c != nil {
		c.byID.Delete(pid.GetId())
	}
}

// Standings lists the actors of an actor system, by their paths; empty where no census is taken. Safe for any goroutine.
func Standings(system *actor.ActorSystem) []Standing {
	c := censusOf(system)
	if c == nil {
		return nil
	}
	var list []Standing
	c.byID.Range(func(id, mailbox any) bool {
		m := mailbox.(Counted)
		list = append(list, Standing{ID: id.(string), Waiting: m.UserMessageCount(), Handled: m.Handled(), Panics: m.Panics()})
		return true
	})
	slices.SortFunc(list, func(a, b Standing) int { return cmp.Compare(a.ID, b.ID) })
	return list
}
