// Package dedupe keeps a message from being stored twice within a window of time: producers that send again after a timeout
// send the same unique key (UNIQ_KEY) again. It is built on the doors of package system alone.
//
//	put ── hook: known key? refuse, or count ──► log ── dispatcher: notes topic and key of what is stored
//
// The window is what the log says, so it is there again after a start and after a crash: a small file says from where on the
// log has to be read for it. Only what is stored makes a duplicate of what follows: a put that failed can be sent again at
// once. Therefore two puts of one key at the same moment, and puts in the moments after a start while the window is still
// being read, may both be stored. Batches pass.
package dedupe
