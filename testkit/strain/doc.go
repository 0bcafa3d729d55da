// Package strain has tests of a node under clients that behave badly, and of how soon it wakes clients that wait: a process of
// its own, on the real disk, with all of its ports open. They are short by default; docs/TESTING.md has the commands that take
// minutes. STRAIN_SECONDS says for how long they run.
package strain
