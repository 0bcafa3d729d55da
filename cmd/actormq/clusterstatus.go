package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/actormq/actormq/cmd/actormq/internal/tools"
	members "github.com/actormq/actormq/system/cluster"
)

func newClusterCommand() *cobra.Command {
	c := &cobra.Command{Use: "cluster", Short: "Look at replica groups, and promote a slave", Args: cobra.NoArgs}
	c.AddCommand(newClusterStatusCommand(), newClusterPromoteCommand())
	return c
}

func newClusterStatusCommand() *cobra.Command {
	var join, etcd string
	var tlsFlags tools.TLSFlags
	var asJSON bool
	var wait time.Duration
	c := &cobra.Command{
		Use:   "status (--join HOST:PORT,... | --etcd HOST:PORT,...)",
		Short: "Show who leads, who is in sync, and how far each node is",
		Long:  `Asks the etcd of the nodes, one of them is enough, or an external one. The exit status is 3 when there is no cluster, or nobody leads.`,
		Example: `  actormq cluster status --join 127.0.0.1:21100
  actormq cluster status --etcd 10.0.0.9:2379 --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			endpoints, err := endpointsOf(join, etcd)
			if err != nil {
				return err
			}
			secure, err := tlsFlags.Config()
			if err != nil {
				return err
			}
			all, err := readClusters(cmd.Context(), endpoints, secure, wait)
			if err != nil {
				return statusError{statusUnreached, err}
			}
			return showClusters(cmd, all, asJSON)
		},
	}
	c.Flags().StringVar(&join, "join", "", "HOST:PORT,... of nodes, as node has them")
	c.Flags().StringVar(&etcd, "etcd", "", "HOST:PORT,... of an external etcd")
	tlsFlags.Bind(c)
	c.Flags().DurationVar(&wait, "wait", 0, "how long to wait until somebody leads and all nodes are in sync")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object for each cluster")
	return c
}

// readClusters asks once, or until all is well or the wait is over.
func readClusters(ctx context.Context, endpoints []string, secure *tls.Config, wait time.Duration) ([]members.Status, error) {
	for deadline := time.Now().Add(wait); ; {
		ask, cancel := context.WithTimeout(ctx, 5*time.Second)
		all, err := members.Read(ask, endpoints, secure)
		cancel()
		if err == nil && len(all) > 0 && !slices.ContainsFunc(all, unsettled) || !time.Now().Before(deadline) || ctx.Err() != nil {
			return all, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// unsettled tells whether nobody leads a cluster, a node is not in sync, or one has not said yet how far what it has is confirmed.
func unsettled(s members.Status) bool {
	return !s.Leads || len(s.InSync) < len(s.Nodes) || slices.ContainsFunc(s.Nodes, func(n members.NodeState) bool { return n.End > 0 && n.Confirmed == 0 })
}

// etcdEndpoints are the addresses of an external etcd, HOST:PORT or URLs of that, which may end with a slash. What is refused for what can be a
// password is not in the error.
func etcdEndpoints(list string) ([]string, error) {
	endpoints := strings.Split(list, ",")
	for i, e := range endpoints {
		if strings.Contains(e, "://") {
			endpoints[i] = strings.TrimSuffix(e, "/")
		}
		if strings.Contains(e, "@") {
			return nil, fmt.Errorf("--etcd, address %d: want HOST:PORT: there is no logging in at etcd by name and password", i+1)
		}
	}
	return endpoints, checkEndpoints(endpoints)
}

// endpointsOf are the addresses of the etcd of nodes, or of an external one.
func endpointsOf(join, etcd string) (endpoints []string, err error) {
	if (join == "") == (etcd == "") {
		return nil, errors.New("either --join or --etcd")
	}
	if etcd != "" {
		return etcdEndpoints(etcd)
	}
	for _, n := range nodesOf(join) {
		endpoints = append(endpoints, n.Port(members.PortClient))
	}
	return endpoints, checkEndpoints(endpoints)
}

func checkEndpoints(endpoints []string) error {
	for _, e := range endpoints {
		bare := strings.TrimPrefix(strings.TrimPrefix(e, "http://"), "https://")
		if _, port, err := net.SplitHostPort(bare); err != nil {
			return fmt.Errorf("%q: want HOST:PORT: %w", e, err)
		} else if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return fmt.Errorf("%q: want HOST:PORT: %w", e, err)
		}
	}
	return nil
}

func showClusters(cmd *cobra.Command, all []members.Status, asJSON bool) error {
	if len(all) == 0 {
		return statusError{statusNotFound, errors.New("there is no cluster")}
	}
	leaderless := false
	for _, s := range all {
		leaderless = leaderless || !s.Leads
		if asJSON {
			if err := tools.WriteJSON(cmd.OutOrStdout(), s); err != nil {
				return err
			}
			continue
		}
		leader := s.Leader
		if !s.Leads {
			leader = "none"
		}
		fmt.Fprintf(cmd.OutOrStdout(), "cluster=%s epoch=%d leader=%s in_sync=%s\n", s.Cluster, s.Epoch, leader, strings.Join(s.InSync, ","))
		for _, n := range s.Nodes {
			fmt.Fprintf(cmd.OutOrStdout(), "node=%s role=%s broker=%s in_sync=%t log_end=%d confirmed=%d\n", n.ID, n.Role, n.Broker,
				slices.Contains(s.InSync, n.ID), n.End, n.Confirmed)
		}
	}
	if leaderless {
		return statusError{statusNotFound, errors.New("nobody leads")}
	}
	return nil
}
