// Package projection keeps counts and sizes of messages, a row a topic and tag, in an embedded SQL database of the user's, and
// with them, in the same transaction, its place in the log: each message is counted exactly once, whatever crashes. It is
// built on the doors of package system alone, and needs nothing but database/sql; folder sqlite, a module of its own, has the
// tests with SQLite.
//
//	projection_counts    topic, tag, messages, bytes of the bodies
//	projection_position  one row: the place in the log
//
// Only what is durable is counted, so that a power cut takes nothing that the database has. A database that belongs to another
// log is emptied and filled anew. Statements are SQLite's.
package projection
