package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// descendants lists a process and all its children.
func descendants(root int) []string {
	kids := map[string][]string{}
	d, _ := os.ReadDir("/proc")
	for _, e := range d {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		b, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
		s := string(b)
		if i := strings.LastIndexByte(s, ')'); i > 0 {
			if f := strings.Fields(s[i+1:]); len(f) > 1 {
				kids[f[1]] = append(kids[f[1]], e.Name())
			}
		}
	}
	list := []string{strconv.Itoa(root)}
	for i := 0; i < len(list); i++ {
		list = append(list, kids[list[i]]...)
	}
	return list
}

func (o *options) coldStart() error {
	if o.exec == "" {
		return fmt.Errorf("-exec is required")
	}
	if c, err := net.DialTimeout("tcp", o.addr, time.Second); err == nil {
		c.Close()
		return fmt.Errorf("%s is already in use", o.addr)
	}
	cmd := exec.Command("sh", "-c", o.exec)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	t0 := time.Now()
	if err := cmd.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	go func() { cmd.Wait(); close(exited) }()
	stop := sync.OnceFunc(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(20 * time.Second):
			syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
			<-exited
		}
	})
	defer stop()
	go func() { // the server has a process group of its own: who ends this one does not reach it
		<-signals
		stop()
		os.Exit(130)
	}()
	topic := o.wait
	if topic == "" {
		topic = "bench_coldstart"
	}
	f := sendFrame(o.bin(), false, topic, 0, o.body, 1)
	var port, first float64
	for deadline := t0.Add(120 * time.Second); first == 0; time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			return fmt.Errorf("no accepted send within 120 s")
		}
		select {
		case <-exited:
			return fmt.Errorf("server exited")
		default:
		}
		c, err := dial(o.addr)
		if err != nil {
			continue
		}
		if port == 0 {
			port = float64(time.Since(t0)) / 1e6
		}
		if r, err := c.call(f); err == nil && r.code == 0 {
			first = float64(time.Since(t0)) / 1e6
		}
		c.Close()
	}
	pids := descendants(cmd.Process.Pid)
	all0, anon0 := procRSS(pids)
	startCPU := procCPU(pids)
	time.Sleep(2 * time.Second)
	pids = descendants(cmd.Process.Pid)
	c0, t1 := procCPU(pids), time.Now()
	time.Sleep(time.Duration(o.idle * float64(time.Second)))
	idle := (procCPU(pids) - c0) / time.Since(t1).Seconds()
	all, anon := procRSS(pids)
	l := o.line().put("body", o.body).put("port_ms", port).put("start_ms", first).put("start_cpu_s", startCPU).
		put("rss_start_mb", all0).put("rss_anon_start_mb", anon0).put("rss_mb", all).put("rss_anon_mb", anon).
		put("idle_cpu", idle).put("processes", len(pids))
	if o.count > 0 {
		fill := *o
		fill.conns, fill.inflight, fill.topic = 2, 64, topic
		p, err := fill.produce(3600, int64(o.count), false, 1)
		if err != nil {
			return err
		}
		all, anon = procRSS(pids)
		l.put("msgs", p.msgs).put("failed", p.failed).put("rss_after_mb", all).put("rss_anon_after_mb", anon)
	}
	l.print()
	return nil
}
