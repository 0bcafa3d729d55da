package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
)

// The bare server: the least that a broker in Go has to do for a send. It reads the frame, looks for its opaque, appends the bytes to a
// file, and answers with a fixed response; a master passes them on to its slave first and answers when that has them. No checks, no
// queues, no index, no limits. What it does not reach is out of reach for a broker.
type bare struct {
	bin   bool
	batch int64
	dir   string
	count atomic.Int64
	slave *bareSlave

	mu    sync.Mutex
	files []*os.File // the last one is written to
	buf   []byte
	size  int64
}

// bareBlock is what is written at a time. A file has bareFile bytes, as a log's, and the oldest goes when there are more than bareFiles.
const (
	bareBlock = 256 << 10
	bareFile  = 1 << 30
	bareFiles = 8
)

// append writes whole blocks; what is left waits for the next.
func (s *bare) append(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.buf = append(s.buf, b...); len(s.buf) < bareBlock {
		return nil
	}
	if s.size+int64(len(s.buf)) > bareFile {
		if err := s.roll(); err != nil {
			return err
		}
	}
	_, err := s.files[len(s.files)-1].WriteAt(s.buf, s.size)
	s.size += int64(len(s.buf))
	s.buf = s.buf[:0]
	return err
}

// roll begins the next file.
func (s *bare) roll() error {
	f, err := os.CreateTemp(s.dir, "bare")
	if err != nil {
		return err
	}
	s.files, s.size = append(s.files, f), 0
	if len(s.files) > bareFiles {
		s.files[0].Close()
		os.Remove(s.files[0].Name())
		s.files = s.files[1:]
	}
	return nil
}

// serveBare serves until TERM: a master at -addr, with -slave one that replicates to it, or with -role slave what it replicates to.
func (o *options) serveBare() error {
	s := &bare{bin: o.bin(), batch: int64(o.batch), dir: o.dir}
	err := s.roll()
	if err != nil {
		return err
	}
	defer func() {
		for _, f := range s.files {
			os.Remove(f.Name())
		}
	}()
	if o.slave != "" {
		if s.slave, err = dialSlave(o.slave); err != nil {
			return err
		}
	}
	ln, err := net.Listen("tcp", o.addr)
	if err != nil {
		return err
	}
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	go func() { <-stop; ln.Close() }()
	for {
		c, err := ln.Accept()
		if err != nil {
			return nil
		}
		if o.role == "slave" {
			go s.follow(c)
		} else {
			go s.serve(c)
		}
	}
}

// serve answers the requests of one connection, those of one read together.
func (s *bare) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 64<<10)
	ok := encode(s.bin, 0, flagResponse, []field{{"msgId", "7F0000010000271F0000000000000000"}, {"queueId", "0"}, {"queueOffset", "1234567"}}, nil)
	out := answers{c: c}
	for {
		head, err := r.Peek(4)
		if err != nil {
			return
		}
		size := 4 + int(binary.BigEndian.Uint32(head))
		b, err := r.Peek(size)
		if err == bufio.ErrBufferFull {
			b = make([]byte, size)
			_, err = io.ReadFull(r, b)
		} else if err == nil {
			_, err = r.Discard(size)
		}
		if err == nil {
			err = s.request(&out, ok, b)
		}
		if err == nil && (r.Buffered() < 4 || len(out.b) > 64<<10) {
			err = out.send(s.slave)
		}
		if err != nil {
			return
		}
	}
}

// request stores a send; the only other requests are those of the generator before and after.
func (s *bare) request(out *answers, ok *frame, b []byte) error {
	code, flag, opaque, err := headOf(b[4:])
	if err != nil {
		return err
	}
	f := ok
	switch code {
	case codeSendV2, codeSendBatch:
		n := int64(1)
		if code == codeSendBatch {
			n = s.batch
		}
		s.count.Add(n)
		if err := s.append(b); err != nil {
			return err
		}
		if s.slave != nil {
			out.upTo = s.slave.send(b)
		}
		if flag&flagOneway != 0 {
			return nil
		}
	case codeMaxOffset:
		n := int64(0)
		if q := queueOf(b); q == 0 {
			n = s.count.Load()
		}
		f = encode(s.bin, 0, flagResponse, []field{{"offset", strconv.FormatInt(n, 10)}}, nil)
	}
	out.b = f.appendTo(out.b, opaque, 0, 0, 0)
	return nil
}

// headOf returns code, flag and opaque of a frame from its header's length on.
func headOf(b []byte) (code, flag int, opaque uint32, err error) {
	word := binary.BigEndian.Uint32(b)
	h := b[4 : 4+int(word&0xffffff)]
	if word>>24 == 1 {
		return int(binary.BigEndian.Uint16(h)), int(binary.BigEndian.Uint32(h[9:])), binary.BigEndian.Uint32(h[5:]), nil
	}
	if code, err = jsonInt(h, `"code":`); err != nil {
		return
	}
	if flag, err = jsonInt(h, `"flag":`); err != nil {
		return
	}
	o, err := jsonInt(h, `"opaque":`)
	return code, flag, uint32(o), err
}

func queueOf(b []byte) int {
	r := response{header: b[8 : 8+int(binary.BigEndian.Uint32(b[4:])&0xffffff)]}
	q, _ := strconv.Atoi(r.ext("queueId"))
	return q
}

// answers are what a connection will be told once its slave has all up to a position.
type answers struct {
	c    net.Conn
	b    []byte
	upTo int64
}

func (a *answers) send(s *bareSlave) error {
	if s != nil && a.upTo > 0 {
		return s.replicate(a)
	}
	_, err := a.c.Write(a.b)
	a.b = a.b[:0]
	return err
}

// bareSlave is the master's side of a slave: one connection for all bytes, and the answers that wait for it, in their order.
type bareSlave struct {
	mu         sync.Mutex
	c          net.Conn
	buf        []byte
	pos, acked int64
	owed       []answers
}

func dialSlave(addr string) (*bareSlave, error) {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	s := &bareSlave{c: c}
	go s.acknowledged()
	return s, nil
}

func (s *bareSlave) send(b []byte) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.buf = append(s.buf, b...)
	s.pos += int64(len(b))
	return s.pos
}

// replicate takes the answers over and writes what there is; others may have written their bytes before, and the slave may have them.
func (s *bareSlave) replicate(a *answers) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owed = append(s.owed, *a)
	a.b, a.upTo = nil, 0
	s.release()
	if len(s.buf) == 0 {
		return nil
	}
	_, err := s.c.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

// release sends the answers whose bytes the slave has.
func (s *bareSlave) release() {
	kept := s.owed[:0]
	for _, a := range s.owed {
		if a.upTo > s.acked {
			kept = append(kept, a)
		} else if _, err := a.c.Write(a.b); err != nil {
			fmt.Fprintln(os.Stderr, "bare server:", err)
		}
	}
	s.owed = kept
}

// acknowledged reads how much the slave has, and sends what waited for it.
func (s *bareSlave) acknowledged() {
	var b [64 << 10]byte
	have := 0
	for {
		n, err := s.c.Read(b[have:])
		if err != nil {
			return
		}
		if have += n; have < 8 {
			continue
		}
		whole := have / 8 * 8
		at := int64(binary.BigEndian.Uint64(b[whole-8:]))
		have = copy(b[:], b[whole:have])
		s.mu.Lock()
		s.acked = at
		s.release()
		s.mu.Unlock()
	}
}

// follow is the slave: it stores what comes and answers with how much it has.
func (s *bare) follow(c net.Conn) {
	defer c.Close()
	b := make([]byte, 256<<10)
	total := uint64(0)
	for {
		n, err := c.Read(b)
		if err != nil {
			return
		}
		if err := s.append(b[:n]); err != nil {
			return
		}
		total += uint64(n)
		if _, err := c.Write(binary.BigEndian.AppendUint64(nil, total)); err != nil {
			return
		}
	}
}
