package cluster

// compare tells the log of nodes that name themselves otherwise than this node does, once each. What a node proves to another one holds for the address
// that it has dialled, as text: where the two differ neither its name server nor its rules of access take it for one of the group.
func (e *elector) compare() {
	for id, n := range e.view.nodes {
		here := e.cfg.node(id).Base
		switch {
		case n.Base == "" || n.Base == here:
			delete(e.named, id)
		case e.named[id] != n.Base:
			if e.named == nil {
				e.named = map[string]string{}
			}
			e.named[id] = n.Base
			e.cfg.Logger.Error().Str("node", id).Str("here", here).Str("there", n.Base).
				Msg("the list of nodes is not the same on each: with rules of access these two do not know each other; give both the same --join, and start again")
		}
	}
}
