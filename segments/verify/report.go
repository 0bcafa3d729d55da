package verify

import (
	"errors"
	"fmt"

	"github.com/actormq/actormq/segments"
	"github.com/actormq/actormq/segments/store"
)

// Finding is one damage. Offset is a byte in File, which is a path below the store's folder when it lies there.
type Finding struct {
	Part   string `json:"part"` // commitlog, consumequeue, index or checkpoint
	File   string `json:"file"`
	Offset int64  `json:"offset"`
	What   string `json:"what"`
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s at %d: %s", f.Part, f.File, f.Offset, f.What)
}

// Parts of a store.
const (
	PartLog        = "commitlog"
	PartQueues     = "consumequeue"
	PartIndex      = "index"
	PartCheckpoint = "checkpoint"
)

// maxFindings bounds what a report keeps.
const maxFindings = 10_000

// Report is what Run has seen.
type Report struct {
	Dir          string    `json:"dir"`
	Clean        bool      `json:"closedProperly"`
	Whole        bool      `json:"whole"` // nothing is damaged; NextStart may have something
	LogMin       int64     `json:"logMin"`
	LogEnd       int64     `json:"logEnd"`
	Records      int64     `json:"records"`
	LostRecords  int64     `json:"lostRecords"` // of Records those that stand for lost ones: earlier damage, closed
	Queues       int64     `json:"queues"`
	Units        int64     `json:"units"`
	IndexFiles   int64     `json:"indexFiles"`
	IndexEntries int64     `json:"indexEntries"`
	Findings     []Finding `json:"findings"`
	MoreFindings int64     `json:"moreFindings"` // beyond the first 10,000
	// NextStart is what the next start makes good by itself: no damage.
	NextStart     []Finding `json:"nextStart"`
	MoreNextStart int64     `json:"moreNextStart"` // beyond the first 10,000
	// Marks say what is not to be believed, though it may read well: no findings, as the next start sees to them.
	Marks []store.Mark `json:"marks"`
}

// Count is how much is wrong, also what the next start makes good.
func (r *Report) Count() int64 {
	return int64(len(r.Findings)+len(r.NextStart)) + r.MoreFindings + r.MoreNextStart
}

// In tells whether a part has findings.
func (r *Report) In(part string) bool {
	for _, f := range r.Findings {
		if f.Part == part {
			return true
		}
	}
	return false
}

func (v *verifier) found(part, file string, offset int64, format string, args ...any) {
	v.foundAt(v.placeOf(part, file), part, file, offset, fmt.Sprintf(format, args...))
}

// foundAt reports what is wrong with a place as a whole.
func (v *verifier) foundAt(at place, part, file string, offset int64, what string) {
	v.where[at]++
	if len(v.Findings) >= maxFindings {
		v.MoreFindings++
		return
	}
	v.places = append(v.places, at)
	v.Findings = append(v.Findings, Finding{Part: part, File: v.below(file), Offset: offset, What: what})
}

// below is a path below the store's folder, when it lies there.
func (v *verifier) below(file string) string {
	if n := len(v.params.Dir) + 1; len(file) > n && file[:n] == v.params.Dir+"/" {
		return file[n:]
	}
	return file
}

// foundError reports an error that may say itself where it is.
func (v *verifier) foundError(part, file string, offset int64, err error) {
	var damage *segments.CorruptionError
	if errors.As(err, &damage) {
		file, offset, err = damage.File, damage.Offset, damage.Err
	}
	v.found(part, file, offset, "%v", err)
}
