// Package delay is the scheduler: it delivers delayed messages when their time has come (spec/store.md §10).
//
// A delayed message lies in SCHEDULE_TOPIC_XXXX, in the queue of its level; the unit of the consume queue carries the time in
// ms at which it is due. The scheduler has one child actor a level. A level reads its queue and the log directly, restores the
// messages that are due to their own topic, and puts them as any other message:
//
//	queue ── due? ──► record ── restore ──► put, up to a batch in flight ── stored? ──► offset ── interval ──► delayOffset.json
//	  │       │ no: a timer for the first message of the level, for no other
//	  └ end: idle, until MessagesArrived
//
// What is promised:
//
//   - Each message at least once. An offset goes on only over what is stored, and is saved only when that is durable. Twice
//     only what was delivered after the last save, if the process was killed; not after a stop in order (W21, L56).
//   - In order within a level: a batch is put in order, and nothing behind it before all of it is stored. What is refused is
//     put again, after a pause that grows. Only when the writer itself refuses a put and takes one behind it (a panic) may
//     the two change places.
//   - No level is stuck (L03, L55): a record that is damaged, stays unreadable, has no destination or can't be stored as it is is
//     left out with a line in the log; an offset outside of the queue goes to the nearest end.
//   - A level that is no longer configured goes on until its queue is empty; RocketMQ leaves it lying.
//   - The clock (L59): a message that would have to wait longer than its level's delay is due now, as in RocketMQ; only a second more
//     is put down to a clock that is being corrected. Timers are set again after a minute, so that a clock that is set forward is
//     noticed.
//
// A level never blocks: puts answer on other goroutines, which send it one message a batch. The offsets file is written on a
// goroutine of its own. The scheduler runs on masters only: messages.DeliverDelayed switches it.
package delay
