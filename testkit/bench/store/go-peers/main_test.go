package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestABenchRemovesNothingOfOthers: -dir may be a folder that somebody needs.
func TestABenchRemovesNothingOfOthers(t *testing.T) {
	o := &options{dir: t.TempDir()}
	mine := filepath.Join(o.dir, "mine")
	if err := os.WriteFile(mine, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ran := func(*options) error { return os.WriteFile(filepath.Join(o.dir, "left"), nil, 0o600) }
	if err := o.fresh(ran); err == nil {
		t.Fatal("a folder that no bench has made was taken")
	}
	if _, err := os.Stat(mine); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(o.dir, "new"), t.TempDir()} { // one that is not there, and one that is empty
		o.dir = dir
		if err := o.fresh(ran); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Fatal("the folder stays")
		}
	}
}
