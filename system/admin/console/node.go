package console

import (
	"cmp"
	"math"
	"net/http"
	"path"
	"slices"
	"strings"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/cleaner"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/ext/scrub"
)

// replicasView is who has the log beside this node.
type replicasView struct {
	Role, HAAddress string
	Written         int64
	Replicas        []replicaRow
	Following       messages.Following
	Slave           bool
}

type replicaRow struct {
	Address       string
	Acked, Behind int64
}

func (c *Console) replicas(*http.Request) (page, error) {
	st := c.store.Status()
	v := replicasView{
		Role: st.Role.String(), HAAddress: c.store.HAAddress(), Written: int64(st.WrittenTo), Following: c.store.Following(), Slave: st.Role == messages.Slave,
	}
	for _, r := range c.store.Replicas() {
		v.Replicas = append(v.Replicas, replicaRow{r.Address, int64(r.Acked), int64(max(st.WrittenTo-r.Acked, 0))})
	}
	return page{Template: "replicas", Title: "Replicas", Nav: "replicas", Data: v}, nil
}

// storageView is the log, the disk, and what is done with them.
type storageView struct {
	Loss, Flush           string
	Options               system.Options
	Retention             messages.Retention
	Status                system.Status
	Stats                 system.Stats
	Disks                 []diskRow
	Cleaned               cleaner.Cleaned
	Ballast               bool
	OldestMs              int64 // store time of the log's first message; 0: there is none
	Unflushed, Undispatch int64
	Held                  int64 // bytes of the log
	Extensions            []system.ExtensionStatus
	Scrub                 *scrub.Status // nil: there is none
}

type diskRow struct {
	What, Dir         string
	Total, Used, Free int64
	Percent           float64 // -1: unknown
	Problem           string
	Warn, Bad         bool
}

func (c *Console) storage(*http.Request) (page, error) {
	st, stats, cleaning, opt := c.store.Status(), c.store.Stats(), c.store.Cleaning(), c.store.Options()
	v := storageView{
		Loss: c.lossWindow(), Flush: opt.FlushDiskType.String(), Options: opt, Retention: c.store.Retention(), Status: st, Stats: stats,
		Cleaned: cleaning.Cleaned, Ballast: cleaning.Ballast, Unflushed: int64(max(st.WrittenTo-st.FlushedTo, 0)),
		Undispatch: int64(max(st.WrittenTo-st.DispatchedTo, 0)), Held: int64(st.WrittenTo - stats.LogMin), Extensions: c.store.Extensions(),
	}
	for _, d := range cleaning.Disks {
		row := diskRow{What: d.What, Dir: d.Dir, Total: d.Usage.TotalBytes, Used: d.Usage.UsedBytes, Free: d.Usage.FreeBytes, Percent: -1}
		if d.Err != nil {
			row.Problem = d.Err.Error()
		} else if usable := d.Usage.UsedBytes + d.Usage.FreeBytes; usable > 0 {
			row.Percent = 100 * float64(d.Usage.UsedBytes) / float64(usable)
		}
		row.Warn, row.Bad = row.Percent > float64(v.Retention.MaxUsedPercent), row.Percent > float64(v.Retention.CleanForcibly)
		v.Disks = append(v.Disks, row)
	}
	if m, err := c.store.MessageAt(stats.LogMin); err == nil {
		v.OldestMs = m.StoreTimestampMs
	}
	if c.cfg.Scrub != nil {
		done := c.cfg.Scrub()
		v.Scrub = &done
	}
	return page{Template: "storage", Title: "Storage", Nav: "storage", Data: v}, nil
}

// actorRow is an actor in the tree, or a branch of it without one.
type actorRow struct {
	Name    string
	Depth   int
	Is      bool // there is an actor, not only others below it
	Waiting int
	Rate    float64
	Handled int64
	Panics  int64
	More    int // children that are left out
}

// maxChildren is how many actors below one the tree shows: there is one for each connection.
const maxChildren = 50

func (c *Console) actors(*http.Request) (page, error) {
	rates := c.history.Rates()
	rows := tree("the store's actors", c.store.Actors(), rates)
	rows = append(rows, tree("the node's actors", actors.Standings(c.cfg.Root.ActorSystem()), rates)...)
	return page{Template: "actors", Title: "Actors", Nav: "actors", Data: rows}, nil
}

// tree puts actors, which come by their paths, below each other.
func tree(root string, all []actors.Standing, rates map[string]float64) []actorRow {
	rows := []actorRow{{Name: root, Rate: math.NaN()}}
	at := map[string]int{} // of paths in rows
	children := map[string]int{}
	var leave []string // paths that are left out
	slices.SortFunc(all, func(a, b actors.Standing) int { return natural(a.ID, b.ID) })
	for _, one := range all {
		if under(leave, one.ID) {
			continue
		}
		parent := ""
		for i, part := range strings.Split(one.ID, "/") {
			own := path.Join(parent, part)
			if _, there := at[own]; !there {
				if children[parent]++; children[parent] > maxChildren {
					rows[at[parent]].More++
					leave = append(leave, own)
					break
				}
				at[own] = len(rows)
				rows = append(rows, actorRow{Name: part, Depth: i + 1})
			}
			parent = own
		}
		if parent == one.ID {
			row := &rows[at[parent]]
			row.Is, row.Waiting, row.Handled, row.Panics, row.Rate = true, one.Waiting, one.Handled, one.Panics, math.NaN()
			if rate, known := rates[one.ID]; known {
				row.Rate = rate
			}
		}
	}
	return rows
}

// natural compares paths, numbers at the ends of their parts by value: level-2 comes before level-10.
func natural(a, b string) int {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	return slices.CompareFunc(x, y, func(a, b string) int {
		s, t := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
		if s != t {
			return cmp.Compare(s, t)
		}
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
}

func under(paths []string, id string) bool {
	for _, p := range paths {
		if id == p || strings.HasPrefix(id, p+"/") {
			return true
		}
	}
	return false
}
