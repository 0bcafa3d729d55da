package messages

// DispatchRequest describes one record that the reput dispatcher read from the log. Keys and UniqKey are slices of the
// batch's own buffer: they are valid until the batch is released.
type DispatchRequest struct {
	Queue                     QueueKey
	QueueOffset               QueueOffset
	PhysicalOffset            PhysicalOffset
	PreparedTransactionOffset PhysicalOffset
	StoreTimestampMs          int64
	TagsCode                  int64 // what a consume-queue unit carries (spec/store.md §2.8)
	SizeBytes                 int32
	SysFlag                   int32
	Further                   bool   // Queue is another one than the record's own (INNER_MULTI_DISPATCH)
	Keys                      []byte // the KEYS property, keys separated by spaces
	UniqKey                   []byte // the UNIQ_KEY property
}

// End is the physical offset behind the record.
func (r *DispatchRequest) End() PhysicalOffset { return r.PhysicalOffset + PhysicalOffset(r.SizeBytes) }

// DispatchBatch carries records in log order from the reput dispatcher to one builder. The dispatcher owns it again once
// every builder has answered its Delivery; builders must not keep slices of it.
type DispatchBatch struct {
	Requests []DispatchRequest
	UpTo     PhysicalOffset // every record below is in this batch or an earlier one
	Bytes    []byte         // backs Keys and UniqKey
}

// LogGrown tells the dispatcher that the log's readable end has moved. One at most is pending: the sender coalesces.
type LogGrown struct{}

// MessagesArrived tells the pull hold and other listeners which queues have grown. It is sent once per built batch; the
// slice belongs to the receiver.
type MessagesArrived struct {
	Arrivals []Arrival
}

// Arrival is one message that has become readable in its queue.
type Arrival struct {
	Queue            QueueKey
	QueueOffset      QueueOffset
	TagsCode         int64
	StoreTimestampMs int64
}
