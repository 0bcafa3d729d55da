package client

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/testkit/fixture"
)

func TestAnswersFindTheirRequests(t *testing.T) {
	const n = 20
	var dialled int
	dial := peers{"a": func(p *peer) {
		var all []*remoting.Command
		for len(all) < n {
			all = append(all, p.read())
		}
		p.write(remoting.NewRequest(remoting.RequestNotifyConsumerIdsChanged, nil)) // opaque 0, no answer
		stranger := all[0].Answer(remoting.ResponseSystemError, "nobody asked")
		stranger.Opaque = 1 << 30
		p.write(stranger)
		for i := range all {
			p.answer(all[n-1-i])
		}
		silent(p)
	}}.dial(t)
	c := New(Options{Dial: func(ctx context.Context, address string) (net.Conn, error) {
		dialled++ // not guarded: there must be one only
		return dial(ctx, address)
	}})
	defer c.Close()
	var callers sync.WaitGroup
	remarks := make([]string, n)
	for i := range n {
		callers.Go(func() {
			answer, err := c.Call(t.Context(), "a", request(fmt.Sprint(i)))
			if err == nil {
				remarks[i] = answer.Remark
			}
		})
	}
	callers.Wait()
	for i, remark := range remarks {
		require.Equal(t, fmt.Sprint(i), remark)
	}
	require.Equal(t, 1, dialled)
}

func TestNoAnswer(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		late := make(chan struct{})
		c := New(Options{Dial: peers{"a": func(p *peer) {
			first := p.read()
			<-late
			p.answer(first)
			echo(p)
		}}.dial(t)})
		defer c.Close()
		begin := time.Now()
		_, err := c.Call(t.Context(), "a", request("first"))
		require.ErrorIs(t, err, ErrNoAnswer)
		require.True(t, Unreached(err))
		require.EqualError(t, err, "HEART_BEAT at a: no answer in 3s")
		require.Equal(t, 3*time.Second, time.Since(begin))

		close(late) // what comes too late goes to nobody, and the connection is still good
		mustCall(t, c, "a", "second")
	})
}

func TestTheCallersDeadlineCounts(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		c := New(Options{Dial: peers{"a": silent}.dial(t)})
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		_, err := c.Call(ctx, "a", request(""))
		require.ErrorIs(t, err, ErrNoAnswer)
		require.Equal(t, time.Minute, time.Since(begin))

		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err = c.Call(ctx, "a", request(""))
		require.ErrorIs(t, err, context.Canceled)
		require.False(t, Unreached(err), "who gives up himself does not try again")
	})
}

func TestDiallingTakesNoLongerThanTheTimeout(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		c := New(Options{Timeout: 2 * time.Second, Dial: func(ctx context.Context, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}})
		defer c.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		_, err := c.Call(ctx, "a", request(""))
		require.ErrorIs(t, err, ErrConnection)
		require.Equal(t, 2*time.Second, time.Since(begin))
	})
}

func TestPeerThatReadsNothing(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		release := make(chan struct{})
		deaf := true
		c := New(Options{Timeout: 2 * time.Second, Dial: peers{"a": func(p *peer) {
			if deaf {
				deaf = false
				<-release
				return
			}
			echo(p)
		}}.dial(t)})
		defer c.Close()
		defer close(release)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begin := time.Now()
		_, err := c.Call(ctx, "a", request(""))
		require.ErrorIs(t, err, ErrConnection)
		require.Equal(t, 2*time.Second, time.Since(begin))

		synctest.Wait()
		mustCall(t, c, "a", "on a new connection")
	})
}

func TestLostConnection(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		dialled := 0
		c := New(Options{Dial: peers{"a": func(p *peer) {
			dialled++
			if dialled == 1 {
				p.read() // and closes
				return
			}
			echo(p)
		}}.dial(t)})
		defer c.Close()
		_, err := c.Call(t.Context(), "a", request(""))
		require.ErrorIs(t, err, ErrConnection)
		require.ErrorContains(t, err, "the peer has closed the connection")
		mustCall(t, c, "a", "again")
		require.Equal(t, 2, dialled)
	})
}

func TestUnreachable(t *testing.T) {
	c := New(Options{Dial: peers{}.dial(t)})
	defer c.Close()
	for range 2 {
		_, err := c.Call(t.Context(), "a", request(""))
		require.ErrorIs(t, err, ErrConnection)
		require.True(t, Unreached(err))
		require.ErrorContains(t, err, "HEART_BEAT at a: no connection: dial tcp")
	}
}

func TestHostilePeer(t *testing.T) {
	word := func(n ...uint32) (b []byte) {
		for _, v := range n {
			b = binary.BigEndian.AppendUint32(b, v)
		}
		return b
	}
	tests := map[string]struct {
		frame []byte
		want  error
	}{
		"a length beyond the limit":   {word(1025), remoting.ErrFrameTooLarge},
		"a negative length":           {word(1 << 31), remoting.ErrFrameTooLarge},
		"a header beyond the frame":   {word(8, 5), remoting.ErrBadFrame},
		"an unknown codec":            {word(4, 7<<24), remoting.ErrBadFrame},
		"a header that is no JSON":    {append(word(8, 4), "oops"...), remoting.ErrBadHeader},
		"a binary header without end": {append(word(8, 1<<24|4), "oops"...), remoting.ErrBadHeader},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := New(Options{FrameBytes: 1024, Dial: peers{"a": func(p *peer) {
				p.read()
				_, _ = p.conn.Write(tt.frame) // the client may stop reading in the middle
				silent(p)
			}}.dial(t)})
			defer c.Close()
			_, err := c.Call(t.Context(), "a", request(""))
			require.ErrorIs(t, err, ErrConnection)
			require.ErrorIs(t, err, tt.want)
		})
	}
}

func TestLimits(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		c := New(Options{MaxInFlight: 1, MaxConnections: 1, Dial: peers{"a": silent, "b": echo}.dial(t)})
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := c.Call(ctx, "a", request(""))
			ended <- err
		}()
		synctest.Wait()
		_, err := c.Call(t.Context(), "a", request(""))
		require.ErrorIs(t, err, ErrLimit)
		require.ErrorContains(t, err, "1 requests in flight")
		_, err = c.Call(t.Context(), "b", request(""))
		require.ErrorIs(t, err, ErrLimit)
		require.ErrorContains(t, err, "1 connections")

		cancel()
		require.ErrorIs(t, <-ended, context.Canceled)
		_, err = c.Call(t.Context(), "a", request(""))
		require.ErrorIs(t, err, ErrNoAnswer, "who has given up counts no more")
	})
}

func TestARequestThatIsTooLargeHarmsNobody(t *testing.T) {
	c := New(Options{Dial: peers{"a": echo}.dial(t)})
	defer c.Close()
	large := request("")
	large.Body = make([]byte, remoting.DefaultFrameBytes)
	_, err := c.Call(t.Context(), "a", large)
	require.ErrorIs(t, err, remoting.ErrFrameTooLarge)
	require.False(t, Unreached(err))
	mustCall(t, c, "a", "small")
}

func TestClose(t *testing.T) {
	fixture.Bubble(t, func(t *testing.T) {
		c := New(Options{Dial: peers{"a": silent, "b": func(p *peer) { <-t.Context().Done() }}.dial(t)})
		ended := map[string]chan error{"a": make(chan error, 1), "b": make(chan error, 1)}
		for address, end := range ended { // at a it waits for an answer, at b it writes
			go func() {
				_, err := c.Call(t.Context(), address, request(""))
				end <- err
			}()
		}
		synctest.Wait()
		c.Close() // synctest fails the test if anything goes on
		require.ErrorIs(t, <-ended["a"], ErrClosed)
		require.Error(t, <-ended["b"])
		_, err := c.Call(t.Context(), "a", request(""))
		require.ErrorIs(t, err, ErrClosed)
		c.Close()
	})
}
