package store

import (
	"fmt"
	"strings"

	"github.com/actormq/actormq/messages"
)

// Finding is a kind of event.
type Finding string

// What opening a store can find or do. Offsets are physical unless said otherwise.
const (
	FoundForeign      Finding = "foreign file"              // a file that does not belong there; left alone
	MendedSegment     Finding = "segment mended"            // an empty last file removed, or a short one extended
	FoundHole         Finding = "damage in the log"         // From..To is lost, what follows is kept
	ClosedHole        Finding = "damage closed"             // From..To now holds records that stand for the lost ones; a copy is in Path
	CutTail           Finding = "log cut"                   // what was behind the end: From..To, copied to Path
	RemovedSegment    Finding = "segment removed"           // a whole file behind the end
	NotKept           Finding = "not kept"                  // something was cut without a (full) copy, or a hole stays for want of one: Err says why
	CutQueue          Finding = "queue cut"                 // from queue offset From on
	DroppedQueue      Finding = "queue dropped"             // to be built again from the log
	RestartedQueue    Finding = "queue restarted"           // its topic was deleted and made again, or its offsets jump: it now begins at queue offset From
	EmptiedQueue      Finding = "queue emptied"             // the log has none of its records: it goes on at queue offset From
	ClosedGap         Finding = "queue gap closed"          // queue offsets From..To name a place in a hole
	RejectedRecord    Finding = "record not queued"         // its topic or queue cannot be a folder, or its queue offset does not follow
	FoundUnproven     Finding = "not proven durable"        // a sync had failed: the log from From on was copied to new files, Path is one of them
	UnprovenQueues    Finding = "queues not proven durable" // a sync of one had failed, or a start was interrupted: all are built again with the records from From on
	DroppedIndex      Finding = "index file dropped"
	UnprovenIndex     Finding = "index not proven complete" // a start was interrupted that built it again: it is built anew with the records from From on
	MissingIndex      Finding = "index files are missing"   // since the last clean stop: the index is built anew
	CutIndex          Finding = "index cut"                 // entries from record From on
	Dispatched        Finding = "dispatched"                // records From..To went to queues and index again
	DamagedCheckpoint Finding = "checkpoint"                // not readable: taken as unknown
	DamagedFloors     Finding = "queue floors"              // not readable: deleted topics may come back
	NoRoom            Finding = "disk is full"              // recovery goes on without what could not be written: Err says what
	EmptyLog          Finding = "log is gone"               // there are consume queues, but no commit log
)

// Event is one finding. Which fields are set depends on What.
type Event struct {
	What     Finding
	Path     string
	Queue    messages.QueueKey
	From, To int64
	Err      error // the cause, nil when there is none to tell
}

// String is the event as one line.
func (e Event) String() string {
	var b strings.Builder
	b.WriteString(string(e.What))
	if e.Path != "" {
		fmt.Fprintf(&b, ": %s", e.Path)
	}
	if e.Queue.Topic != "" {
		fmt.Fprintf(&b, ": %s/%d", e.Queue.Topic, e.Queue.QueueID)
	}
	if e.From != 0 || e.To != 0 {
		fmt.Fprintf(&b, ": %d", e.From)
	}
	if e.To != 0 {
		fmt.Fprintf(&b, "..%d", e.To)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// changing asks whether a part of the log may be changed.
func (s *Store) changing(what Finding, part Span) error {
	if s.options.Changing == nil {
		return nil
	}
	if err := s.options.Changing(what, part); err != nil {
		return fmt.Errorf("%s, %d..%d: %w", what, part.From, part.To, err)
	}
	return nil
}

// maxEvents bounds what Report keeps; Options.Events hears all.
const maxEvents = 1000

// Report says what Open found and did.
type Report struct {
	Plan       Plan
	Events     []Event // the first thousand
	MoreEvents int     // how many there were beyond
	Quarantine string  // folder of what was cut off; empty: nothing was
	Dispatched int64   // records that went to queues and index again
	// IndexFrom is the physical offset from which on the index would have the keys of all records, with Options.IndexUnbuilt.
	IndexFrom messages.PhysicalOffset
}

// Changed tells whether anything but the lock, the abort marker and the checkpoint was changed.
func (r *Report) Changed() bool { return len(r.Events) > 0 }
