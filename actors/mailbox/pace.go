package mailbox

import "time"

const (
	// A sender that never waits keeps its processor until the runtime takes it away: after 10 ms, or 25 where threads share it. Who has been
	// called waits for that, and those behind him wait for him. So where senders meet one of turnMessages gives way: with the one who is called
	// two of them wait, which leaves 99.9 % alone; and no more than one in turnTime.
	turnMessages = 4096
	turnTime     = time.Millisecond
	// crowdMessages is for how long senders that have met count as many.
	crowdMessages = 1 << 17
)

// pace tells when a sender gives way; the runner's.
type pace struct {
	met     int64 // messages handled when a sender last found the actor running
	handled int64 // when one last gave way
	at      int64 // the same, in ns since made
}

// tired tells the sender that has run the actor to give way once others may run it. It is asked now and then.
func (m *Combining) tired() bool {
	p := &m.pace
	if m.handled-p.handled < turnMessages || p.met == 0 || m.handled-p.met > crowdMessages {
		return false
	}
	now := m.now()
	if now-p.at < int64(turnTime) {
		return false
	}
	p.handled, p.at = m.handled, now
	return true
}
