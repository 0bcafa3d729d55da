// Package reput turns the commit log into queues (RocketMQ: ReputMessageService): the dispatcher reads the log in order and
// hands batches of dispatch requests to builders; the queue builder is the one that puts units into the consume queues
// (spec/store.md §6).
//
//	writer ── LogGrown ──► dispatcher ── Delivery{DispatchBatch} ──► queue builders ── MessagesArrived ──► listeners
//	                            ▲                        └─────────► index builder
//	                            └──────── the same Delivery, answered ────────┘
//
// # Dispatcher (Actor)
//
//	LogGrown          read on (announced by a bell, at most once; also at start)
//	Delivery          a builder's answer: credit for one more batch
//	AwaitDispatched   answered once every builder has built up to an offset
//
// Each builder has a fixed number of deliveries, its credit: while one of them has none left the log is not read, so memory
// is bounded and nothing is lost. A builder that must not hold up the others (a user's own) gets a dispatcher of its own,
// with its own position. A builder that has failed gets nothing more; the others go on.
//
// # Damage
//
// What is no record, or names another place than its own, is left out: at once, and never without a report
// (Config.OnDamage). Reading goes on where a record stands that is believed (record.Resync): first where the damaged record's
// own length leads, then at the first place behind it from which a chain of records runs to a known end. So a record forged
// inside a body is not taken for one. Without such a place the rest of the segment is left out.
// Missing segments are skipped likewise. The readable end must lie between two records.
//
// # Queue builder (QueueBuilder)
//
//	Delivery       append the units of the batch; tell the listeners what is readable now; answer
//	FlushQueues    make everything durable, then answer
//	RebuildQueue   read the log again from the queue's end on
//	DestroyQueue   delete a queue
//	DestroyTopic   delete the queues of a topic, while it may be coming to life again
//
// It never puts a unit at another place than its own. At a gap the queue stops growing, and what it lacks is read from the
// log again, on a goroutine of its own, until it has caught up; when the log does not hold it, the queue is stuck, which
// concerns no other queue (Config.OnProblem). While a queue lacks units the flusher is told nothing, so that a start after a
// crash finds it, and the queue says where it goes on (Queue.GoesOn), for what it lacks may expire; then it begins there.
//
// Appending is memory; on a timer the tails are written and synced on a goroutine of their own, and the flusher is told only
// what is durable. A failed write loses nothing and is tried again, with longer and longer pauses; when too much waits to be
// written no more batches are taken. A failed sync is final.
//
// # Panics
//
// A panic costs the progress of one batch: the dispatcher reads it again from the log, the queue builder appends it again
// (what is there already is left out). A second one within a minute, and a memory fault while the log is read, fail the
// actor: it says so (OnFailed) and answers everything with the cause.
package reput
