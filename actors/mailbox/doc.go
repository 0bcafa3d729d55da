// Package mailbox holds the mailbox of actormq's own actors: a combining mailbox (flat combining), used in place of a
// lock.
//
//	idle   the sender claims it with one compare-and-swap and runs the actor on its own goroutine; when Post returns, the
//	       message has been handled
//	busy   senders push onto a list without a lock; whoever runs the actor drains the whole list as one batch
//	wait   a sender that waits for its message may go first when it finds the actor idle while other senders wait for theirs
//	       (PostWaiting): as with a mutex, for 4 ms at most; what was posted is never overtaken
//	budget after a number of batches the runner hands the rest to a fresh goroutine, so that no sender is held captive
//
// With an inline budget of 0 the actor always runs on a goroutine of its own, and may block there.
//
// Messages may be posted from New on: they are kept until the actor runs, behind its Started. A Gate holds several actors until all
// are spawned.
//
// It keeps the contract of an actor's mailbox: one message at a time, the order of each sender, system messages first.
// It is bounded (Post answers ErrBusy when Limit messages are queued; messages without a Link of their own are exempt:
// their senders keep at most one outstanding), and it closes: once closed or stopped, every queued and every later
// request is refused at once with the cause, where the library's own mailboxes drop what is queued without a word.
package mailbox
