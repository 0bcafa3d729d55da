package nodeconf

import (
	"time"
)

// poolKeys are the keys of the transient store pool.
var poolKeys = []keyDef{
	{"transientStorePoolEnable", "false", "write to memory first, and to the files behind it; for ASYNC_FLUSH, not at a slave: " +
		"a node that is killed loses what was not committed", boolean(func(c *Config) *bool { return &c.Store.TransientPoolEnable })},
	{"transientStorePoolSize", "5", "write buffers of mappedFileSizeCommitLog each",
		integer(func(c *Config) *int { return &c.Store.TransientPoolSize }, 1, 1000)},
	{"fastFailIfNoBufferInStorePool", "false", "no commit-log file without a buffer: puts are refused meanwhile",
		boolean(func(c *Config) *bool { return &c.Store.TransientPoolFailFast })},
	{"commitIntervalCommitLog", "200", "ms between looks at what is to be committed",
		millis(func(c *Config) *time.Duration { return &c.Store.CommitInterval })},
	{"commitCommitLogLeastPages", "4", "dirty pages for a commit, 0: whatever there is",
		pages(func(c *Config) *int { return &c.Store.CommitLeastPages })},
	{"commitCommitLogThoroughInterval", "200", "ms until a commit regardless of pages",
		millis(func(c *Config) *time.Duration { return &c.Store.CommitThorough })},
}
