// Package crash proves that nothing acknowledged is lost: it runs whole stores (system.Store) on the simulated disk
// (testkit/memfs) under a seeded workload, cuts the power or kills the process at a seeded disk operation, opens what is left,
// and judges it by a model of everything that was ever put.
//
//	Run        one seed: several generations on the same disk, each ends in a crash
//	Model      what was put, what was acknowledged and when; which of it has to be there, and which is gone for good
//	trip       the disk operation at which the crash happens, and what is left then
//
// What the judge requires of each crash:
//
//   - Kill: every acknowledged message is there, at the place that its answer named; with the transient store pool, which
//     ASYNC_FLUSH may have, every one that lies below the committed position.
//   - Power cut: the same for SYNC_FLUSH; with ASYNC_FLUSH whatever lies below the flushed position, and that position is
//     never further back than the flush interval allows. What an earlier recovery has found counts as durable, in both modes.
//   - Log, queues and index agree: every record has its unit, every unit its record (or a message that was allowed to go), every
//     key its record, and every further queue of a record names it. Nothing is there twice, nothing that was never put, nothing that
//     was gone already.
//   - Recovering a second time finds the same.
//
// Run belongs into a testing/synctest bubble: the time that it waits costs nothing, and between two steps every actor has
// come to rest, so that a seed gives the same disk operations again. Result.Trace has them for the case that it does not.
package crash
