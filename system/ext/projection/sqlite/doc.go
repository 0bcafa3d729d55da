// Package sqlite tests package projection with SQLite. It is a module of its own, so that nobody gets SQLite who does not want it.
package sqlite
