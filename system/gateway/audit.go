package gateway

import (
	"maps"
	"strings"

	edge "github.com/actormq/actormq/actors/gateway"
	"github.com/actormq/actormq/messages/remoting"
)

// audited are the requests of tools that change something.
var audited = []int{
	remoting.RequestUpdateAndCreateTopic, remoting.RequestDeleteTopicInBroker, remoting.RequestUpdateAndCreateSubscriptionGroup,
	remoting.RequestDeleteSubscriptionGroup, remoting.RequestCloneGroupOffset, remoting.RequestInvokeBrokerToResetOffset,
	remoting.RequestUpdateBrokerConfig, remoting.RequestCleanExpiredConsumeQueue, remoting.RequestCleanUnusedTopic,
	remoting.RequestDeleteExpiredCommitLog, remoting.RequestUpdateAndCreateACLConfig, remoting.RequestDeleteACLConfig,
	remoting.RequestUpdateGlobalWhiteAddrsConfig, remoting.RequestDrainBroker, remoting.RequestPromoteBroker, remoting.RequestWipeWritePermOfBroker,
	remoting.RequestAddWritePermOfBroker, remoting.RequestPutKVConfig, remoting.RequestDeleteKVConfig, remoting.RequestUpdateNamesrvConfig,
	remoting.RequestDeleteTopicInNamesrv,
}

// unsaid are the fields that no log gets.
var unsaid = []string{"signature", "secretkey", "securitytoken"}

// audit has each request that changes something written to the log with who has asked for it, and what became of it.
func (n *Node) audit(ports []edge.Port) {
	for i := range ports {
		routes := maps.Clone(ports[i].Routes)
		for _, code := range audited {
			if route, there := routes[code]; there {
				handle := route.Handle
				route.Handle = func(r *edge.Request) {
					n.note(r)
					handle(r)
				}
				routes[code] = route
			}
		}
		ports[i].Routes = routes
	}
}

// note writes a line when the request is answered.
func (n *Node) note(r *edge.Request) {
	const shown = 1024
	line := n.broker.Logger.Info().Bool("audit", true).Str("request", remoting.RequestName(r.Code)).Str("from", r.Conn.RemoteAddr())
	for _, f := range r.ExtFields {
		if !isSecret(f.Name) {
			line = line.Str("field."+strings.Clone(f.Name), strings.Clone(f.Value[:min(len(f.Value), shown)]))
		}
	}
	if len(r.Body) > 0 {
		line = line.Str("body", string(r.Body[:min(len(r.Body), shown)]))
	}
	r.OnAnswer(func(code int) { line.Int("code", code).Msg("a tool has asked for a change") })
}

func isSecret(name string) bool {
	for _, word := range unsaid {
		if strings.Contains(strings.ToLower(name), word) {
			return true
		}
	}
	return false
}
