package actors_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
)

func TestTableEmpty(t *testing.T) {
	table := actors.NewTable[string, int]()
	_, ok := table.Get("a")
	require.False(t, ok)
	require.Zero(t, table.Len())
	require.Same(t, table, table.Edit().Table(), "nothing changed: no copy")
	edit := table.Edit()
	require.False(t, edit.Delete("a"))
	require.Same(t, table, edit.Table(), "deleting what is not there changes nothing")
}

// Every version of a table stays as it was, whatever is done to copies of it; a map is the judge.
func TestTableAgainstMap(t *testing.T) {
	type version struct {
		table *actors.Table[int, int]
		want  map[int]int
	}
	random := rand.New(rand.NewPCG(1, 2))
	versions := []version{{actors.NewTable[int, int](), map[int]int{}}}
	for range 200 {
		from := versions[random.IntN(len(versions))]
		edit, want := from.table.Edit(), maps.Clone(from.want)
		for range random.IntN(40) {
			key := random.IntN(2000)
			if random.IntN(3) == 0 {
				_, there := want[key]
				require.Equal(t, there, edit.Delete(key))
				delete(want, key)
			} else {
				want[key] = random.Int()
				edit.Set(key, want[key])
			}
			require.Equal(t, len(want), edit.Len())
			got, ok := edit.Get(key)
			value, there := want[key]
			require.Equal(t, there, ok)
			require.Equal(t, value, got)
		}
		versions = append(versions, version{edit.Table(), want})
	}
	for _, v := range versions {
		require.Equal(t, v.want, maps.Collect(v.table.All()))
		require.Equal(t, len(v.want), v.table.Len())
	}
}

func TestTableGetDoesNotAllocate(t *testing.T) {
	edit := actors.NewTable[string, int]().Edit()
	for i := range 1000 {
		edit.Set(fmt.Sprint("topic-", i), i)
	}
	table := edit.Table()
	require.Zero(t, testing.AllocsPerRun(100, func() { tableSink, _ = table.Get("topic-500") }))
	require.Equal(t, 500, tableSink)
}

func TestTableAllStops(t *testing.T) {
	edit := actors.NewTable[int, int]().Edit()
	for i := range 100 {
		edit.Set(i, i)
	}
	n := 0
	for range edit.Table().All() {
		if n++; n == 3 {
			break
		}
	}
	require.Equal(t, 3, n)
}

var tableSink int

func BenchmarkTable(b *testing.B) {
	edit := actors.NewTable[string, int]().Edit()
	for i := range 10_000 {
		edit.Set(fmt.Sprint("topic-", i), i)
	}
	table := edit.Table()
	b.Run("op=get", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			tableSink, _ = table.Get("topic-5000")
		}
	})
	b.Run("op=change", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			next := table.Edit()
			next.Set("topic-5000", 1)
			table = next.Table()
		}
	})
}
