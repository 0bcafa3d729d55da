package reput

import "github.com/actormq/actormq/messages"

// fetchAhead is how many records' queues are fetched together.
const fetchAhead = 16

// fetch looks up the queues of the next records, and has the processor fetch what their units need, when the records before were of
// many queues: then nothing of a queue is in its cache, and the next queue's memory is waited for while this one's is, instead of
// one after the other.
func (a *QueueBuilder) fetch(next []messages.DispatchRequest) {
	if !a.scattered {
		clear(a.soon[:])
		return
	}
	for i := range next {
		a.soon[i] = nil
		if a.mine(&next[i]) {
			a.soon[i] = a.queues[next[i].Queue]
		}
	}
	for _, st := range a.soon[:len(next)] {
		if st != nil {
			st.queue.Fetch()
		}
	}
}

// forgetMet drops the queues that were met last, or are going to be: one of them is another one now.
func (a *QueueBuilder) forgetMet() {
	clear(a.last[:])
	clear(a.soon[:])
}
