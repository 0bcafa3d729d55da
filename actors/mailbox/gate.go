package mailbox

// Gate holds actors that are spawned one after the other, and send to each other by name, until all of them are there: what one
// sends to another that has no name yet would be lost. What is sent meanwhile is kept, and handled once the gate is open. Whoever
// spawns them opens it: one goroutine at a time.
type Gate struct {
	open bool
	held []*Combining // in the order in which they were spawned
}

// holds keeps a mailbox that may start; false: the gate is open.
func (g *Gate) holds(m *Combining) bool {
	if !g.open {
		g.held = append(g.held, m)
	}
	return !g.open
}

// Open starts those that are held, in the order in which they were spawned, and from now on everybody at once.
func (g *Gate) Open() {
	held := g.held
	g.open, g.held = true, nil
	for _, m := range held {
		m.begin()
	}
}
