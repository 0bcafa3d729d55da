//go:build race

package crash_test

// raced: the race detector is on, whose scheduler is random on purpose.
const raced = true
