// Package cleaner keeps the disk from running full (spec/store.md §9): it deletes what has expired, looks how full the file
// systems are, and says when puts must be refused.
//
//	cleanTick      the actor's own timer (cleanResourceInterval): a round of cleaning
//	checkTick      the actor's own timer, once a second: how full the file systems are
//	SpaceProblem   a part of the store finds no room: a round at once, and puts are refused when the part asks for it
//	CleanNow       delete expired files whatever the hour, in this round and those that follow
//
// # Policy
//
// What is decided is plain code: [Policy.Plan] says how many segments go, [Policy.Full] whether the disk is too full. A segment
// expires by the store time of its newest record, not by the file's time (weakness W19 of the original). Expired segments
// go in the hours of deleteWhen, when a file system is fuller than diskMaxUsedSpaceRatio, and when somebody asks;
// segments that have not expired go only above diskSpaceCleanForciblyRatio, and no more of them than bring it down again, or two
// when the log's file system has no room for the next segment. Such rounds begin as soon as a file system is that full, a second apart: a
// producer may write more in cleanResourceInterval than a round deletes. How full it is says the file system alone: a part that finds no
// room for another reason (a quota, no inodes) has what is expired deleted, and nothing else. With keepUnreadMessages a segment that has
// expired stays while a consumer group has not read all of it, unless a file system is fuller than keepUnreadMaxUsedSpaceRatio, or has no
// room for the next segment. At most ten go in a round, oldest first, never the last one, and never what is not dispatched or not durable.
//
// # Deleting
//
// A segment first leaves the log's published list, so no new reader finds it. Its file goes when its last reader has left,
// or after destroyMapedFileIntervalForcibly: then only its name goes, and the readers keep their map (W29). Files go in
// order, each deletion made durable before the next, so that no crash leaves a gap in the log. Later segments leave the list
// meanwhile: a reader that never ends holds up no cleaning (L09). Then each queue's minimum is raised and its expired
// files go, and the index builder is told.
//
// # Topics with a retention of their own
//
// Store times do not go back in the log, so that one place divides a topic: in front of its first message that has not expired,
// everything of it has, in all of its queues. The round finds that place from the queues' beginnings on, has it noted durably, and raises the
// minimum of the queues. A topic that is kept longer than fileReservedTime keeps the segments behind that place instead.
//
// # A full disk
//
// One evaluator looks at all file systems (W15): the commit log's, the queues' and the index's. Above
// diskSpaceWarningLevelRatio, or while a part of the store has no room for what it must write, OnFull says why puts are
// refused; it is told nil when that is over. An unknown usage changes nothing. Looking at the disk and deleting run on
// goroutines of their own, so that a slow deletion holds up neither the other nor the actor (L49).
//
// A ballast file is given up when the file system is nearly full, so that checkpoint, offsets, configuration and queues can
// still be written, and made again when there is room; meanwhile the allocator leaves that much room ([Actor.Reserved]).
package cleaner
