// Package dedupe keeps a message from being stored twice within a window of time: producers that send again after a timeout
// send the same unique key (UNIQ_KEY) again. It is built on the doors of package system alone.
//
//	put ── hook: known key? refuse, or count ──► log ── dispatcher: notes topic and key of what is stored
//
// The window is what the log says, so it is there again after a start and after a crash: a small file says from where on the
// log has to be read for it. A program that calls Store.AwaitExtension(ctx, "dedupe") before it takes puts from others has all of it from the
// first put on; one that does not may store a duplicate while the window is still being read. Only what is stored makes a
// duplicate of what follows: a put that failed can be sent again at once, and two puts of one key at the same moment may
// both be stored. Batches pass, and so does what consumers send back and what of it is sent again: it keeps its key.
//
// A message that waits for its time or the end of its transaction counts for the topic that it is sent to.
package dedupe
