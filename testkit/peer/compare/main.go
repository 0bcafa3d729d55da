package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/actormq/actormq/testkit/golden"
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
	name := flag.String("golden", "", "golden store that messages were appended to: all that was in it must be there still")
	flag.Parse()
	args := flag.Args()
	if len(args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: compare [-golden NAME] OURS.json PEER.json [LEDGER…]")
		os.Exit(2)
	}
	ours, peer := read(args[0]), read(args[1])
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
	for _, file := range args[2:] {
		acked += check(file, a, complain)
	}
	if *name != "" {
		for who, text := range map[string]string{"ours": args[0], "peer": args[1]} {
			dumped, err := os.ReadFile(text)
			if err != nil {
				complain("%v", err)
			}
			for _, wrong := range golden.Load(*name).CheckGrown(dumped) {
				complain("%s, what %s was: %s", who, *name, wrong)
			}
		}
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

// acknowledged is a line of a ledger.
type acknowledged struct {
	Topic, MsgID, Body, Status string
	QueueID                    int32
	QueueOffset, PhyOffset     int64
	BodyLen                    int
}

// check looks up every acknowledged message of a ledger, or of the puts that the peer has written down (*.json).
func check(file string, have map[place]*message, complain func(string, ...any)) (n int) {
	text, err := os.ReadFile(file)
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
	var all struct{ Puts []acknowledged }
	if strings.HasSuffix(file, ".json") {
		if err := json.Unmarshal(text, &all); err != nil {
			complain("%s: %v", file, err)
		}
	} else {
		for line := range strings.Lines(string(text)) {
			var e acknowledged
			if err := json.Unmarshal([]byte(line), &e); err != nil {
				complain("ledger line %d: %v", len(all.Puts)+1, err)
				continue
			}
			all.Puts = append(all.Puts, e)
		}
	}
	for _, e := range all.Puts {
		if e.Status != "" && e.Status != "PUT_OK" {
			continue
		}
		n++
		m := have[place{e.Topic, e.QueueID, e.QueueOffset}]
		if m == nil || e.MsgID != "" && m.MsgID != e.MsgID || e.MsgID == "" && m.PhyOffset != e.PhyOffset || m.BodyLen != max(e.BodyLen, len(e.Body)) {
			complain("acknowledged %+v, stored %+v", e, m)
		}
	}
	return n
}
