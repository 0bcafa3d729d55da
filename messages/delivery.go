package messages

// Delivery brings a DispatchBatch from a dispatcher to one of its builders and the builder's answer back.
//
// Sender: the dispatcher (and, going back, the builder). Receiver: a queue builder, the index builder, a dispatcher of the
// user's own. Bound: a dispatcher has a fixed number of deliveries for each builder, its credit; none is ever made later,
// so a builder that is behind stops the reading of the log and fills no mailbox.
//
// The builder answers by calling Built (or Refuse) exactly once for each, in the order in which they came, on any
// goroutine, and touches neither the delivery nor its batch afterwards. The batch is shared with the other builders: it is read only.
type Delivery struct {
	link Link

	Builder int            // number of the builder at its dispatcher
	Batch   *DispatchBatch // to be built, completely and in order
	Err     error          // the answer: why the builder has failed for good; nil when the batch is built

	back     func(*Delivery)
	answered bool
}

// NewDelivery returns a delivery that back takes to the dispatcher again, once for each answer.
func NewDelivery(builder int, back func(*Delivery)) *Delivery {
	d := &Delivery{Builder: builder, back: back}
	d.link.Bind(d)
	return d
}

// MailboxLink returns the link by which a mailbox chains the delivery.
func (d *Delivery) MailboxLink() *Link { return &d.link }

// Load makes the delivery ready to be sent with a batch; only the dispatcher that has it back calls this.
func (d *Delivery) Load(batch *DispatchBatch) {
	d.Batch, d.Err, d.answered = batch, nil, false
}

// Built answers: every record of the batch is built, or err says why the builder builds nothing any more.
func (d *Delivery) Built(err error) {
	if d.answered {
		return
	}
	d.answered = true
	d.Err = err
	d.back(d)
}

// Refuse answers with an error. On a delivery that has been answered it does nothing: a dispatcher that has stopped lets
// what comes back drop.
func (d *Delivery) Refuse(cause error) { d.Built(cause) }
