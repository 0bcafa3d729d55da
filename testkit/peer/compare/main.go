package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

type dump struct {
	Loaded    bool   `json:"loaded"`
	LoadError string `json:"loadError"`
	CommitLog struct{ MinOffset, MaxOffset int64 }
	Queues    []struct {
		Topic     string
		QueueID   int32
		MinOffset int64
		MaxOffset int64
		Messages  []struct {
			Offset int64
			Status string
			Msg    *message
		}
	}
}

type message struct {
	PhyOffset   int64
	QueueOffset int64
	MsgID       string
	RawSha256   string
	BodyLen     int
}

type place struct {
	topic  string
	queue  int32
	offset int64
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: compare OURS.json PEER.json [LEDGER]")
		os.Exit(2)
	}
	ours, peer := read(os.Args[1]), read(os.Args[2])
	bad := 0
	complain := func(format string, args ...any) {
		if bad++; bad <= 10 {
			fmt.Printf(format+"\n", args...)
		}
	}
	if !ours.Loaded || !peer.Loaded {
		complain("not loaded: ours %q, peer %q", ours.LoadError, peer.LoadError)
	}
	if ours.CommitLog != peer.CommitLog {
		complain("commit log: ours %+v, peer %+v", ours.CommitLog, peer.CommitLog)
	}
	a, b := places(ours), places(peer)
	for p, m := range a {
		if other, ok := b[p]; !ok || *other != *m {
			complain("%v: ours %+v, peer %+v", p, m, other)
		}
	}
	for p := range b {
		if a[p] == nil {
			complain("%v: only the peer has it", p)
		}
	}
	acked := 0
	if len(os.Args) > 3 {
		acked = check(os.Args[3], a, complain)
	}
	fmt.Printf("%d messages in both dumps, %d acknowledged ones looked up, %d differences\n", len(a), acked, bad)
	if bad > 0 {
		os.Exit(1)
	}
}

func read(file string) *dump {
	text, err := os.ReadFile(file)
	d := &dump{}
	if err == nil {
		err = json.Unmarshal(text, d)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", file, err)
		os.Exit(1)
	}
	return d
}

func places(d *dump) map[place]*message {
	all := map[place]*message{}
	for _, q := range d.Queues {
		for _, m := range q.Messages {
			if m.Msg != nil {
				all[place{q.Topic, q.QueueID, m.Offset}] = m.Msg
			}
		}
	}
	return all
}

// check looks up every acknowledged message.
func check(file string, have map[place]*message, complain func(string, ...any)) (n int) {
	f, err := os.Open(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); n++ {
		var e struct {
			Topic, MsgID, Body string
			QueueID            int32
			QueueOffset        int64
		}
		if err := json.Unmarshal(s.Bytes(), &e); err != nil {
			complain("ledger line %d: %v", n+1, err)
			continue
		}
		m := have[place{e.Topic, e.QueueID, e.QueueOffset}]
		if m == nil || m.MsgID != e.MsgID || m.BodyLen != len(e.Body) {
			complain("acknowledged %+v, stored %+v", e.MsgID, m)
		}
	}
	return n
}
