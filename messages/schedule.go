package messages

// DeliverDelayed switches the delivery of delayed messages on (a master) or off (a slave, stop). Asking for what is already
// so does nothing. On: the offsets are loaded anew, and every level begins. Off: it is answered once nothing is in flight any
// more and the offsets are in their file; the error is that of the load or of the write.
//
// Sender: system.Store. Receiver: the delay scheduler. Bound: one for each caller that waits.
type DeliverDelayed struct {
	On     bool
	Answer *Answer[struct{}]
}

// Refuse answers with an error.
func (m DeliverDelayed) Refuse(cause error) { m.Answer.Refuse(cause) }
