package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/actormq/actormq/actors"
	"github.com/actormq/actormq/cmd/actormq/internal/nodeconf"
	"github.com/actormq/actormq/cmd/actormq/internal/storedump"
	"github.com/actormq/actormq/messages"
	"github.com/actormq/actormq/system"
	"github.com/actormq/actormq/system/admin"
	"github.com/actormq/actormq/system/client"
	"github.com/actormq/actormq/system/ext/bridge"
	"github.com/actormq/actormq/system/ext/scrub"
	"github.com/actormq/actormq/system/ext/timer"
	"github.com/actormq/actormq/system/ext/tracing"
	"github.com/actormq/actormq/system/gateway"
	"github.com/actormq/actormq/system/gateway/broker"
	"github.com/actormq/actormq/system/gateway/certs"
	"github.com/actormq/actormq/system/remote/endpoint"
)

type nodeFlags struct {
	config, storeDir, listen, namesrv, admin, remote, logLevel string
	set                                                        []string
	durable, printConfig                                       bool
	clusterFlags
}

func newNodeCommand() *cobra.Command {
	var f nodeFlags
	c := &cobra.Command{
		Use:   "node",
		Short: "Run a broker with its name server",
		Long: `Runs a RocketMQ-compatible broker and name server in one process. A line that begins with "ready" on standard
output says that it serves; logs go to standard error. SIGTERM or SIGINT stops it in order.

Without options it keeps its store in ./store and listens on loopback: 127.0.0.1:10911 (broker, and 10909) and
127.0.0.1:9876 (name server); the console, metrics, health and profiles are on 127.0.0.1:10914. A broker.conf of RocketMQ is accepted by -c; every key can also be set by --set key=value, or
by an environment variable ACTORMQ_<KEY>. The keys bridge... copy topics to another node or RocketMQ cluster. --print-config shows all keys, their values and where they came from.`,
		Example: `  actormq node
  actormq node --store-dir /var/lib/actormq --durable
  actormq node --remote-listen 127.0.0.1:10915
  actormq node --set bridgeNamesrvAddr=10.1.0.5:9876 --set bridgeTarget=paris --set "bridgeTopics=orders;bills"
  actormq node -c broker.conf --set brokerName=broker-b --listen 10.0.0.5:10911 --namesrv-listen 10.0.0.5:9876`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runNode(cmd, f) },
	}
	c.Flags().StringVarP(&f.config, "config", "c", "", "broker.conf to read")
	c.Flags().StringVar(&f.storeDir, "store-dir", "", "folder of the store (storePathRootDir)")
	c.Flags().StringVar(&f.listen, "listen", "", "HOST:PORT of the broker (bindAddress, listenPort)")
	c.Flags().StringVar(&f.namesrv, "namesrv-listen", "", "HOST:PORT of the name server (namesrvListen)")
	c.Flags().StringVar(&f.admin, "admin-listen", "", "HOST:PORT of console, metrics, health and profiles (adminListen)")
	c.Flags().StringVar(&f.remote, "remote-listen", "", "HOST:PORT where actors of other processes reach the store (remoteListen)")
	c.Flags().StringArrayVar(&f.set, "set", nil, "key=value, any number of times")
	c.Flags().BoolVar(&f.durable, "durable", false, "acknowledge only what is on the disk (flushDiskType=SYNC_FLUSH)")
	f.clusterFlags.bind(c)
	c.Flags().BoolVar(&f.printConfig, "print-config", false, "print the effective configuration and end")
	c.Flags().StringVar(&f.logLevel, "log-level", "info", "trace, debug, info, warn or error")
	return c
}

// configuration puts the layers together.
func (f nodeFlags) configuration(cmd *cobra.Command) (*nodeconf.Config, error) {
	c := nodeconf.Default()
	if f.config != "" {
		if err := c.Load(f.config); err != nil {
			return nil, err
		}
	}
	bad := []error{c.LoadEnvironment(os.Environ()), f.clusterFlags.defaults(c)}
	for _, pair := range f.set {
		key, value, ok := strings.Cut(pair, "=")
		if !ok {
			bad = append(bad, fmt.Errorf("--set %s: want key=value", pair))
			continue
		}
		bad = append(bad, c.Set(key, value, "--set"))
	}
	if f.storeDir != "" {
		bad = append(bad, c.Set("storePathRootDir", f.storeDir, "--store-dir"))
	}
	if f.listen != "" {
		host, port, err := net.SplitHostPort(f.listen)
		bad = append(bad, err, c.Set("bindAddress", host, "--listen"), c.Set("listenPort", port, "--listen"))
	}
	if cmd.Flags().Changed("namesrv-listen") {
		bad = append(bad, c.Set("namesrvListen", f.namesrv, "--namesrv-listen"))
	}
	if cmd.Flags().Changed("admin-listen") {
		bad = append(bad, c.Set("adminListen", f.admin, "--admin-listen"))
	}
	if cmd.Flags().Changed("remote-listen") {
		bad = append(bad, c.Set("remoteListen", f.remote, "--remote-listen"))
	}
	if f.durable {
		bad = append(bad, c.Set("flushDiskType", system.SyncFlush.String(), "--durable"))
	}
	if err := errors.Join(bad...); err != nil {
		return nil, err
	}
	return c, c.Finish()
}

func runNode(cmd *cobra.Command, f nodeFlags) error {
	conf, err := f.configuration(cmd)
	if err != nil {
		return err
	}
	if f.printConfig {
		fmt.Fprint(cmd.OutOrStdout(), conf.Print())
		return nil
	}
	level, err := zerolog.ParseLevel(f.logLevel)
	if err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	zerolog.SetGlobalLevel(level) // the admin port changes it
	log := zerolog.New(cmd.ErrOrStderr()).With().Timestamp().Logger()
	for _, key := range conf.Ignored {
		log.Warn().Str("key", key).Msg("this key of broker.conf has no effect here")
	}
	if heap := boundHeap(cgroupFiles); heap > 0 {
		log.Info().Int64("bytes", heap).Msg("the heap is bounded by what the container may use")
	}
	for _, odd := range conf.Odd() {
		log.Warn().Msg(odd)
	}
	replication := conf.Store.HAListen
	if f.cluster != "" {
		replication = "" // it comes with the lead
	}
	if err := freePorts(conf, replication); err != nil {
		return err
	}
	ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if f.cluster != "" {
		return runClusterNode(ctx, cancel, cmd.OutOrStdout(), f.clusterFlags, conf, log)
	}
	n, err := orEnd(ctx, stopTimeout, func() (*node, error) { return startNode(conf, log) })
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.OutOrStdout(), n.ready())
	if n, err = n.run(ctx, log); err != nil {
		return err
	}
	cancel() // a second signal ends the process at once
	log.Info().Msg("stopping")
	stop, cancelStop := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancelStop()
	return n.stop(stop)
}

// node is a running node.
type node struct {
	conf    atomic.Pointer[nodeconf.Config]
	change  sync.Mutex // of conf, one after the other
	store   *system.Store
	system  *actor.ActorSystem
	gateway *gateway.Node
	remote  *endpoint.Endpoint // nil: actors of other processes do not reach the store
	certs   *certs.Keeper      // of the remote port; nil: it has none
	admin   *admin.Server      // nil: there is none
	keeps   bool               // the admin port outlives what serves clients: a node of a cluster opens and closes it
	scrub   *scrub.Scrub       // nil: there is none
	bridge  *bridge.Bridge     // nil: there is none
	tracer  *tracing.Tracer    // nil: nothing is traced
	drain   chan time.Duration // a request asks the node to drain for so long, and to stop
	// promoted is told that a request has made the slave the master.
	promoted chan struct{}
	log      zerolog.Logger
}

func startNode(conf *nodeconf.Config, log zerolog.Logger) (*node, error) {
	n := &node{log: log, drain: make(chan time.Duration, 1), promoted: make(chan struct{}, 1)}
	if was, err := asPromoted(conf); err != nil {
		return nil, err
	} else if was {
		log.Warn().Str("file", promotionPath(conf)).Msg("this node was promoted: brokerRole=SLAVE and brokerId have no effect; change them")
	}
	n.conf.Store(conf)
	var err error
	var opt system.Options
	opt, n.scrub = storeOptions(conf, log)
	if err = n.plugBridge(conf, &opt); err != nil {
		return nil, err
	}
	if n.tracer, err = plugTracer(conf, &opt, log); err != nil {
		return nil, err
	}
	if n.store, err = system.Open(opt); err != nil {
		return nil, err
	}
	if err = n.serve(conf.Gateway); err != nil {
		stop, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		return nil, errors.Join(err, n.store.Close(stop))
	}
	return n, nil
}

// storeOptions are the store's, as a node opens it, with the extensions that it has for itself, and the scrub that is plugged in, nil where there is to be none.
func storeOptions(conf *nodeconf.Config, log zerolog.Logger) (opt system.Options, s *scrub.Scrub) {
	opt = conf.Store
	opt.Logger = log.With().Str("part", "store").Logger()
	opt.StopTimeout = stopTimeout
	opt.Progress = func(what string, done, total int64) {
		log.Info().Str("step", what).Int64("done", done).Int64("total", total).Msg("opening the store")
	}
	if conf.ScrubRate > 0 {
		s = scrub.New(scrub.Config{BytesPerSecond: conf.ScrubRate, Logger: opt.Logger})
		s.Plug(&opt)
	}
	if conf.Timed {
		timer.New(timer.Config{}).Plug(&opt)
	}
	return opt, s
}

// serve starts what serves clients with the open store. On an error nothing but the store is left.
func (n *node) serve(g gateway.Config) (err error) {
	conf, log := n.conf.Load(), n.log
	n.system = actor.NewActorSystem(system.ActorLogging(log), actor.WithDeadLetterThrottleInterval(10*time.Millisecond))
	actors.TakeCensus(n.system)
	g.Store, g.ConfigDir = n.store, n.store.ConfigDir()
	g.Broker.Logger = log.With().Str("part", "broker").Logger()
	g.Limits.Logger = log.With().Str("part", "gateway").Logger()
	g.Broker.Delays, _ = messages.ParseDelayLevels(n.store.Options().DelayLevels)
	g.Tools.Options = func() map[string]string { return n.conf.Load().Effective() }
	g.Tools.SetOptions = n.setOptions
	g.Tools.DelayOffsets, g.Tools.Runtime = n.delayOffsets, n.runtime
	g.OnDrain = n.askDrain
	if n.tracer != nil {
		g.Broker.Tracer = n.tracer
	}
	if n.promoted != nil {
		g.OnPromote = n.promote
	}
	g.Join.Connect = func(lost func(string)) (gateway.Caller, func()) { return connect(conf, g.Group, lost) }
	if n.gateway, err = gateway.Start(n.system.Root, g); err != nil {
		n.system.Shutdown()
		return fmt.Errorf("start the gateway: %w", err)
	}
	if err := errors.Join(n.startRemote(conf), n.startAdmin(conf)); err != nil {
		stop, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		return errors.Join(err, n.leave(stop))
	}
	return nil
}

// startAdmin shows the node to those who operate it.
func (n *node) startAdmin(conf *nodeconf.Config) (err error) {
	if conf.AdminListen == "" {
		return nil
	}
	password, err := conf.AdminPassword()
	if err != nil {
		return err
	}
	var scrubbed func() scrub.Status
	if n.scrub != nil {
		scrubbed = n.scrub.Status
	}
	cfg := admin.Config{
		Scrub: scrubbed, Listen: conf.AdminListen, Store: n.store, Node: n.gateway, Version: versionText(), Logger: n.log.With().Str("part", "admin").Logger(),
		Root: n.system.Root, Password: password, Uncompress: storedump.Uncompress,
	}
	if n.keeps {
		if n.admin == nil {
			return nil
		}
		return n.admin.Show(cfg)
	}
	n.admin, err = adminPort(conf, n.log, func() (*admin.Server, error) { return admin.Start(cfg) })
	return err
}

// adminPort is the port for those who operate the node. One that nobody has asked for may be somebody else's: then there is none.
func adminPort(conf *nodeconf.Config, log zerolog.Logger, open func() (*admin.Server, error)) (*admin.Server, error) {
	port, err := open()
	switch {
	case err == nil:
		log.Info().Stringer("address", port.Addr()).Msg("console, metrics, health and profiles are here")
	case !conf.AdminAsked:
		log.Warn().Err(err).Msg("no metrics and no health: set adminListen")
		err = nil
	}
	return port, err
}

// setOptions changes keys while the node runs, for as long as it runs: broker.conf is its owner's.
func (n *node) setOptions(b *broker.Broker, values map[string]string) error {
	n.change.Lock()
	defer n.change.Unlock()
	next, err := n.conf.Load().Change(values, "a tool")
	if err != nil {
		return err
	}
	if err := n.store.SetRetention(next.Running().Retention); err != nil {
		return err
	}
	b.SetPolicy(next.Running().Policy)
	n.conf.Store(next)
	n.log.Info().Interface("options", values).Msg("a tool has changed options")
	return nil
}

// ready is the line that says that the node serves, and what an acknowledgement means.
func (n *node) ready() string {
	o := n.store.Options()
	loss := "a power cut may take what came in the last " + o.FlushInterval.String()
	const pageKiB = 4
	if least := o.FlushLeastPages * pageKiB; least > 0 {
		loss += fmt.Sprintf(" (%v while that is less than %d KiB)", o.FlushThorough, least)
	}
	switch {
	case o.FlushDiskType == system.SyncFlush:
		loss = "what is acknowledged is on the disk"
	case o.Pooled():
		loss += ", a killed process that of the last " + o.CommitThorough.String() + ": transientStorePoolEnable"
	default:
		loss += ", more under load; a killed process loses nothing"
	}
	also := ""
	if n.remote != nil {
		also = " remote=" + n.remote.Address()
	}
	return fmt.Sprintf("ready broker=%s namesrv=%s%s store=%s flush=%s (%s)", n.conf.Load().Gateway.Listen,
		strconv.Quote(n.conf.Load().Gateway.NameServerListen), also, n.conf.Load().Store.Dir, o.FlushDiskType, loss)
}

// delayOffsets is how far each delay level has been delivered, as tools ask for it: levels that have got messages.
func (n *node) delayOffsets() map[int32]int64 {
	offsets := map[int32]int64{}
	for level, at := range n.store.DelayOffsets() {
		if at > 0 {
			offsets[int32(level)] = int64(at)
		}
	}
	return offsets
}

// runtime is what tools show of the store's state: for each delay level how far it is, and how many messages it has had
// (spec/store.md §14.1).
func (n *node) runtime() map[string]string {
	st := n.store.Status()
	values := map[string]string{
		"dispatchBehindBytes":       strconv.FormatInt(int64(max(st.CommittedTo-st.DispatchedTo, 0)), 10),
		"remainHowManyDataToCommit": strconv.FormatInt(int64(st.WrittenTo-st.CommittedTo), 10) + " B",
		"storeRole":                 st.Role.String(), "runningFlags": st.Flags.String(),
	}
	if st.Cause != nil {
		values["putsRefused"] = st.Cause.Error()
	}
	n.bridgeStatus(values)
	for level, at := range n.store.DelayOffsets() {
		end := n.store.MaxOffset(messages.QueueKey{Topic: messages.TopicSchedule, QueueID: int32(level - 1)})
		if end > 0 {
			values["scheduleMessageOffset_"+strconv.Itoa(level)] = fmt.Sprintf("%d,%d", at, end)
		}
	}
	return values
}

// connect makes the client by which the node reaches other name servers.
func connect(conf *nodeconf.Config, group *gateway.Group, lost func(address string)) (gateway.Caller, func()) {
	opt := client.Options{Lost: lost, Greet: group.Greet}
	if conf.UseTLS {
		opt.TLS = nodeconf.InsecureTLS()
	}
	c := client.New(opt)
	return c.Call, c.Close
}
