package admin

import (
	"cmp"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/actors/extension"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/admin/history"
)

// metric is one family of metrics, described once. docs/METRICS.md has a row for each.
type metric struct {
	desc *prometheus.Desc
	kind prometheus.ValueType // of those that are no histograms
}

var described []*prometheus.Desc

func describe(kind prometheus.ValueType, name, help string, labels ...string) metric {
	d := prometheus.NewDesc("actormq_"+name, help, labels, nil)
	described = append(described, d)
	return metric{desc: d, kind: kind}
}

func gauge(name, help string, labels ...string) metric {
	return describe(prometheus.GaugeValue, name, help, labels...)
}

func counter(name, help string, labels ...string) metric {
	return describe(prometheus.CounterValue, name, help, labels...)
}

// Of the store.
var (
	buildInfo    = gauge("build_info", "1, with the version of the program and the flush mode of the store.", "version", "flush")
	writable     = gauge("store_writable", "1 while puts are taken, 0 while they are refused.")
	logStart     = gauge("log_start_bytes", "Physical offset at which the commit log begins.")
	logWritten   = gauge("log_written_bytes", "Physical offset up to which the commit log is written.")
	logFlushed   = gauge("log_flushed_bytes", "Physical offset up to which the commit log is durable.")
	logDispatch  = gauge("log_dispatched_bytes", "Physical offset up to which queues and index are built.")
	indexed      = gauge("index_complete", "1 while the index is built, 0 while new messages are not found by key.")
	flushLag     = gauge("flush_lag_bytes", "Bytes of the commit log that are written and not yet durable.")
	dispatchLag  = gauge("dispatch_lag_bytes", "Bytes of the commit log that readers do not find yet.")
	segments     = gauge("log_segments", "Files of the commit log.")
	queues       = gauge("consume_queues", "Consume queues.")
	flushTime    = gauge("flush_duration_seconds", "How long the syncs of the commit log took.")
	refused      = counter("put_refusals_total", "Puts that did not enter the store, by the reason.", "reason")
	pendingPuts  = gauge("pending_puts", "Puts in flight.")
	pendingBytes = gauge("pending_put_bytes", "Bytes of the puts in flight.")
	parked       = gauge("parked_pulls", "Pulls that wait for a message.")
	mailboxes    = gauge("mailbox_messages", "Messages that wait for an actor of the store.", "actor")
	diskSize     = gauge("disk_size_bytes", "Size of the file system of a part of the store.", "part")
	diskFree     = gauge("disk_available_bytes", "What is left of the file system of a part of the store.", "part")
	diskUsed     = gauge("disk_used_ratio", "How full the file system of a part of the store is, 0 to 1.", "part")
	ballast      = gauge("disk_ballast", "1 while the ballast file is there; it is given up on a full disk.")
	deleted      = counter("deleted_segments_total", "Commit-log files that were deleted.")
	unexpired    = counter("deleted_unexpired_segments_total", "Commit-log files that were deleted before their time, for want of room.")
	unread       = counter("deleted_unread_segments_total", "Commit-log files that were deleted though a consumer group had not read them, for want of room.")
	waits        = gauge("expired_files_wait", "1 while expired commit-log files are kept because a consumer group has not read them.")
	scrubbed     = counter("scrubbed_bytes_total", "Bytes of records that the scrub has compared with their checksums.")
	damaged      = gauge("scrub_damaged_messages", "Messages that the scrub found damaged in its last pass, or in the running one.")
	extensions   = gauge("extension_running", "1 while an extension of the store works, 0 while it has failed, waits or is parked.", "extension", "kind")
	extFailures  = counter("extension_failures_total", "Errors, panics and stalls of an extension.", "extension", "kind")
	extLag       = gauge("extension_lag_bytes", "Bytes of the commit log that a dispatcher has not handled.", "extension")
	replicas     = gauge("replicas", "Slaves that follow this node.")
	replicaLag   = gauge("replica_lag_bytes", "Bytes of the commit log that a slave has not acknowledged.", "replica")
	strangers    = counter("refused_replicas_total", "Connections to the replication port that haAllow has kept out.")
	follows      = gauge("follows_master", "0 while this slave does not follow its master, 1 otherwise, also at a master.")
	hanging      = gauge("hanging_segments", "Deleted commit-log files that are kept by a reader.")
)

// Of the node on the network.
var (
	puts          = counter("puts_total", "Sends that reached the store, by what became of them.", "status")
	putTime       = gauge("put_duration_seconds", "How long sends took from their arrival to their answer.")
	putMessages   = counter("put_messages_total", "Messages stored for clients.")
	putBytes      = counter("put_bytes_total", "Bytes of records stored for clients.")
	relayed       = counter("relayed_requests_total", "Requests that were for the node that leads the group: all, and those that no leader was found for in time.", "outcome")
	relayHellos   = counter("relay_hellos_total", "Connections of nodes that said for which client they relay to the node that leads: proved, and refused, which are closed.", "outcome")
	limited       = counter("limited_sends_total", "Sends that were refused because of a limit of their topic, by the limit.", "limit")
	gotMessages   = counter("get_messages_total", "Messages given to clients.")
	connections   = gauge("connections", "Open connections of clients, of all ports.")
	topicCount    = gauge("topics", "Topics with a configuration.")
	groupCount    = gauge("consumer_groups", "Consumer groups with a configuration.")
	groupLag      = gauge("group_lag_messages", "Messages of a topic that a group has not committed.", "group", "topic")
	groupLeftOut  = gauge("group_lag_left_out", "Pairs of group and topic that have no lag here, as there are too many.")
	drainingGauge = gauge("draining", "1 while the node sends producers elsewhere, before it stops.")
)

// maxLags bounds the pairs of group and topic that have a metric.
const maxLags = 10_000

// collector makes metrics of what store and node have counted, whenever it is asked.
type collector struct {
	cfg Config
	to  chan<- prometheus.Metric
}

func newCollector(cfg Config) *collector { return &collector{cfg: cfg} }

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range described {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	one := collector{cfg: c.cfg, to: to}
	one.store()
	one.disk()
	one.replication()
	if c.cfg.Node != nil {
		one.node()
		one.lags()
	}
}

func (c *collector) set(m metric, value float64, labels ...string) {
	c.to <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
}

func (c *collector) count(m metric, value int64, labels ...string) {
	c.set(m, float64(value), labels...)
}

func (c *collector) flag(m metric, on bool) {
	value := 0.0
	if on {
		value = 1
	}
	c.set(m, value)
}

func (c *collector) times(m metric, t actors.Times) {
	buckets := make(map[float64]uint64, len(t.Bounds))
	for i, bound := range t.Bounds {
		buckets[bound.Seconds()] = uint64(t.Below[i])
	}
	c.to <- prometheus.MustNewConstHistogram(m.desc, uint64(t.Count), t.Sum.Seconds(), buckets)
}

func (c *collector) store() {
	st, s := c.cfg.Store.Status(), c.cfg.Store.Stats()
	c.set(buildInfo, 1, c.cfg.Version, c.cfg.Store.Options().FlushDiskType.String())
	c.flag(writable, st.Cause == nil)
	c.count(logStart, int64(s.LogMin))
	c.count(logWritten, int64(st.WrittenTo))
	c.count(logFlushed, int64(st.FlushedTo))
	c.count(logDispatch, int64(st.DispatchedTo))
	c.flag(indexed, st.IndexCause == nil)
	c.count(flushLag, int64(max(st.WrittenTo-st.FlushedTo, 0)))
	c.count(dispatchLag, int64(max(st.WrittenTo-st.DispatchedTo, 0)))
	c.count(segments, int64(s.Segments))
	c.count(queues, int64(s.Queues))
	c.times(flushTime, s.Flushes)
	for why, n := range s.Refused {
		c.count(refused, n, string(why))
	}
	c.count(pendingPuts, s.PendingPuts)
	c.count(pendingBytes, s.PendingBytes)
	c.count(parked, s.ParkedPulls)
	for _, e := range c.cfg.Store.Extensions() {
		c.extension(e)
	}
	for role, n := range s.Mailboxes {
		c.count(mailboxes, int64(n), string(role))
	}
}

func (c *collector) extension(e system.ExtensionStatus) {
	running := 0.0
	if e.State == extension.Running {
		running = 1
	}
	c.set(extensions, running, e.Name, e.Kind)
	c.count(extFailures, e.Failures, e.Name, e.Kind)
	if e.Kind == extension.KindDispatcher {
		c.count(extLag, e.LagBytes, e.Name)
	}
}

func (c *collector) disk() {
	st := c.cfg.Store.Cleaning()
	for _, d := range st.Disks {
		usable := d.Usage.UsedBytes + d.Usage.FreeBytes
		if d.Err != nil || usable <= 0 {
			continue // unknown
		}
		c.set(diskUsed, float64(d.Usage.UsedBytes)/float64(usable), d.What)
		c.count(diskSize, d.Usage.TotalBytes, d.What)
		c.count(diskFree, d.Usage.FreeBytes, d.What)
	}
	if c.cfg.Scrub != nil {
		done := c.cfg.Scrub()
		c.count(scrubbed, done.Bytes)
		c.count(damaged, done.Damaged)
	}
	c.flag(ballast, st.Ballast)
	c.count(deleted, st.Cleaned.Segments)
	c.count(unexpired, st.Cleaned.Unexpired)
	c.count(unread, st.Cleaned.Unread)
	c.flag(waits, st.Cleaned.WaitsFor != "")
	c.count(hanging, int64(st.Cleaned.Hanging))
}

func (c *collector) replication() {
	st, all := c.cfg.Store.Status(), c.cfg.Store.Replicas()
	lags := map[string]int64{} // a node that has just connected again may be there twice
	for _, r := range all {
		name, lag := cmp.Or(r.Node, r.Address), int64(max(st.WrittenTo-r.Acked, 0))
		if old, twice := lags[name]; !twice || lag < old {
			lags[name] = lag
		}
	}
	for name, lag := range lags {
		c.count(replicaLag, lag, name)
	}
	c.count(replicas, int64(len(lags)))
	c.count(strangers, c.cfg.Store.ReplicasRefused())
	c.flag(follows, st.Role != messages.Slave || c.cfg.Store.Following().Connected)
}

func (c *collector) node() {
	b := c.cfg.Node.Broker()
	sends, totals := b.Stats.Sends(), b.Stats.Totals()
	for status := messages.PutOK; status <= messages.LMQConsumeQueueNumExceeded; status++ {
		c.count(puts, sends.Status[status], status.String())
	}
	c.times(putTime, sends.Times)
	c.count(putMessages, totals.PutTimes)
	c.count(putBytes, totals.PutBytes)
	c.count(relayed, b.Relayed.All.Load(), "all")
	c.count(relayed, b.Relayed.Failed.Load(), "failed")
	c.count(relayHellos, b.Relayed.Proved.Load(), "proved")
	c.count(relayHellos, b.Relayed.Refused.Load(), "refused")
	c.count(limited, b.Limited.Messages.Load(), "messages")
	c.count(limited, b.Limited.Bytes.Load(), "bytes")
	c.count(limited, b.Limited.Kept.Load(), "kept")
	c.count(gotMessages, totals.GetTotal)
	c.count(connections, int64(c.cfg.Node.Connections()))
	c.count(topicCount, int64(b.Topics.Len()))
	c.count(groupCount, int64(b.Groups.Len()))
	c.flag(drainingGauge, c.cfg.Node.Draining())
}

// lags tells how far groups are behind, in each topic in which they have committed an offset.
func (c *collector) lags() {
	all := history.Lags(c.cfg.Node.Broker(), "")
	for _, l := range all[:min(len(all), maxLags)] {
		c.count(groupLag, l.Messages, l.Group, l.Topic)
	}
	c.count(groupLeftOut, int64(max(len(all)-maxLags, 0)))
}
