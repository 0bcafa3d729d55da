// Package produce answers the requests of producers: sends of one message and of a batch, with the making of topics, and the
// sending back of messages that a consumer could not handle (spec/remoting.md §8, §10).
//
//	send        checks in the order of §8.2 → topic → message as it is stored → Store.PutAsync → result as a code
//	send back   record at its offset → retry topic with a delay, or dead-letter topic → Store.PutAsync → answer
//
// The store itself moves a message with a delay to the schedule topic, and fills in what it knows better.
package produce
