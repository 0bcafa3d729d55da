package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/fastjson"
	"github.com/actormq/actormq/messages/remoting"
	"github.com/actormq/actormq/system/gateway/broker"
)

// versionName is what tools show for remoting.Version.
const versionName = "V4_9_7"

func rawKeys(v any) ([]byte, error) { return fastjson.MarshalRawKeys(v) }

// getOptions answers 26.
func (t *Tools) getOptions(r *gateway.Request) {
	options := map[string]string{}
	if t.node.Options != nil {
		options = t.node.Options()
	}
	maps.Copy(options, map[string]string{
		"brokerName": t.b.BrokerName, "brokerClusterName": t.b.ClusterName, "brokerId": strconv.FormatInt(t.b.BrokerID, 10),
		"brokerIP1": t.b.StoreHost.Addr().String(), "listenPort": strconv.Itoa(int(t.b.StoreHost.Port())),
		"brokerPermission": strconv.Itoa(t.b.Policy().Perm),
	})
	version, err := json.Marshal(t.b.Topics.DataVersion())
	if err != nil {
		broker.Fail(r, err)
		return
	}
	a := r.Command.Answer(remoting.ResponseSuccess, "")
	a.ExtFields, a.Body = remoting.ToExt(&remoting.VersionAnswer{Version: string(version)}), broker.PropertiesText(options)
	r.Answer(a)
}

// setOptions answers 25.
func (t *Tools) setOptions(r *gateway.Request) {
	changes, err := broker.ParseProperties(r.Body)
	if err != nil {
		broker.Fail(r, err)
		return
	}
	if t.node.SetOptions == nil {
		r.Fail(remoting.ResponseNoPermission, "options can't be changed while the broker runs")
		return
	}
	if err := t.node.SetOptions(t.b, changes); err != nil {
		r.Fail(remoting.ResponseNoPermission, err.Error())
		return
	}
	r.OK(nil)
}

// clean answers 306, 316 and 329.
func (t *Tools) clean(r *gateway.Request) {
	if err := t.cleanStore(r.Code); err != nil {
		broker.Fail(r, err)
		return
	}
	r.OK(nil)
}

func (t *Tools) cleanStore(code int) error {
	s, ok := t.b.Store.(broker.Cleaner)
	if !ok {
		return nil // nothing is kept that could be cleaned
	}
	ctx, cancel := t.b.Context()
	defer cancel()
	switch code {
	case remoting.RequestCleanExpiredConsumeQueue:
		return s.DeleteExpiredQueues(ctx)
	case remoting.RequestCleanUnusedTopic:
		return s.DeleteUnusedTopics(ctx, func(topic string) bool {
			_, used := t.b.Topics.Lookup(topic)
			return used
		})
	}
	return s.DeleteExpiredFiles()
}

// diskRatios are how full the disks are, as parts of one.
func (t *Tools) diskRatios() (log, queues string) {
	part := func(percent int) string {
		const whole = 100
		return strconv.FormatFloat(float64(percent)/whole, 'f', -1, 64)
	}
	s, ok := t.b.Store.(broker.Cleaner)
	if !ok {
		return part(0), part(0)
	}
	l, q := s.DiskUse()
	return part(max(l, 0)), part(max(q, 0))
}

// statsData answers 315. An item of a topic and group that exist is zero until something is counted.
func (t *Tools) statsData(r *gateway.Request) {
	var h remoting.StatsHeader
	if !broker.Header(r, &h) {
		return
	}
	data, ok := t.b.Stats.View(h.StatsName, h.StatsKey, func(topic, group string) bool {
		_, there := t.b.Topics.Lookup(topic)
		if there && group != "" {
			_, there = t.b.Groups.Lookup(group)
		}
		return there
	})
	if !ok {
		r.Fail(remoting.ResponseSystemError, fmt.Sprintf("The stats <%s> <%s> not exist", h.StatsName, h.StatsKey))
		return
	}
	r.OKBody(&data)
}

// runtime answers 28. Tools parse some of the values as numbers and fail without them (spec/remoting.md §17.6).
func (t *Tools) runtime(r *gateway.Request) {
	n := func(v int64) string { return strconv.FormatInt(v, 10) }
	ms := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
	first, end := t.b.Store.LogRange()
	logRatio, queueRatio := t.diskRatios()
	all := t.b.Stats.Totals()
	average := 0.0
	if all.PutTimes > 0 {
		average = float64(all.PutBytes) / float64(all.PutTimes)
	}
	table := map[string]string{
		"brokerVersionDesc": versionName, "brokerVersion": n(remoting.Version),
		"bootTimestamp": n(all.BeganMs), "runtime": sinceText(r.At.Sub(time.UnixMilli(all.BeganMs))),
		"putTps": all.PutRates, "getTransferedTps": all.TransferredRates, "getTotalTps": all.GetRates,
		"getFoundTps": all.FoundRates, "getMissTps": all.MissRates,
		"msgPutTotalYesterdayMorning": n(all.PutYesterdayMorning), "msgPutTotalTodayMorning": n(all.PutTodayMorning),
		"msgPutTotalTodayNow":         n(all.PutTimes),
		"msgGetTotalYesterdayMorning": n(all.GetYesterdayMorning), "msgGetTotalTodayMorning": n(all.GetTodayMorning),
		"msgGetTotalTodayNow":  n(all.GetTotal),
		"putMessageTimesTotal": n(all.PutTimes), "putMessageSizeTotal": n(all.PutBytes), "putMessageFailedTimes": n(all.PutFailed),
		"putMessageAverageSize": strconv.FormatFloat(average, 'f', -1, 64), "putMessageEntireTimeMax": n(all.PutMaxMs),
		"putMessageDistributeTime": all.PutDistribution, "getMessageEntireTimeMax": n(all.GetMaxMs),
		"putLatency99": ms(all.PutLatency99), "putLatency999": ms(all.Put999), "dispatchMaxBuffer": "0", "dispatchBehindBytes": "0",
		"pageCacheLockTimeMills": "0", "earliestMessageTimeStamp": "-1", "startAcceptSendRequestTimeStamp": n(t.b.Policy().AcceptFromMs),
		"commitLogMinOffset": n(int64(max(first, 0))), "commitLogMaxOffset": n(int64(end)), "commitLogDiskRatio": logRatio,
		"consumeQueueDiskRatio": queueRatio, "remainTransientStoreBufferNumbs": n(1<<31 - 1), "remainHowManyDataToFlush": n(int64(max(end-t.b.Store.FlushedTo(), 0))) + " B",
	}
	for _, pool := range []string{"send", "pull", "query"} {
		table[pool+"ThreadPoolQueueSize"], table[pool+"ThreadPoolQueueHeadWaitTimeMills"] = "0", "0"
		table[pool+"ThreadPoolQueueCapacity"] = "10000"
	}
	table["EndTransactionQueueSize"], table["EndTransactionThreadPoolQueueCapacity"] = "0", "100000"
	if t.node.Runtime != nil {
		maps.Copy(table, t.node.Runtime())
	}
	r.OKBody(&remoting.KVTable{Table: table})
}

// sinceText is how the original shows how long it has been running.
func sinceText(d time.Duration) string {
	const hoursADay = 24
	h := int(d.Hours())
	return fmt.Sprintf("[ %d days, %d hours, %d minutes, %d seconds ]",
		h/hoursADay, h%hoursADay, int(d.Minutes())%60, int(d.Seconds())%60)
}
