package filewatch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/filewatch"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/segments/metadata"
	"github.com/actormq/actormq/testkit/fixture"
	"github.com/actormq/actormq/testkit/memfs"
)

func TestAChangeIsToldOnce(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		disk := memfs.New()
		write := func(name, text string) { require.NoError(t, metadata.WriteText(disk, name, []byte(text))) }
		write("conf/a.yml", "one")
		system := actor.NewActorSystem(fixture.Quiet)
		told := make(chan struct{}, 10)
		pid := system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(messages.FilesChanged); ok {
				told <- struct{}{}
			}
		}))
		w, err := filewatch.Start(system.Root, "watch", filewatch.Config{
			Disk: disk, Files: []string{"conf/a.yml", "conf/acl"}, Listener: actors.NewPeer(system.Root, pid),
		})
		require.NoError(t, err)
		after := func(d time.Duration) int {
			<-time.After(d)
			synctest.Wait()
			n := len(told)
			for range n {
				<-told
			}
			return n
		}
		require.Zero(t, after(5*time.Second), "nothing has changed")
		write("conf/a.yml", "two")
		require.Equal(t, 1, after(5*time.Second), "a file of the same length")
		write("conf/a.yml", "two")
		require.Zero(t, after(5*time.Second), "written again, the same content")
		write("conf/acl/b.yml", "new")
		require.Equal(t, 1, after(5*time.Second), "a file in a folder that was not there")
		require.NoError(t, disk.Remove("conf/a.yml"))
		require.Equal(t, 1, after(5*time.Second), "a file that has gone")
		require.NoError(t, w.Close())
		write("conf/a.yml", "three")
		require.Zero(t, after(5*time.Second))
		require.NoError(t, w.Close())
		system.Shutdown()
	})
}
