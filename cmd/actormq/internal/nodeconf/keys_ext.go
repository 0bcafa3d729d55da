package nodeconf

import "math"

// extKeys are the keys of the consume queues' extension files.
var extKeys = []keyDef{
	{"enableConsumeQueueExt", "false", "tags codes of new messages stand in extension files, and are looked up there",
		boolean(func(c *Config) *bool { return &c.Store.ConsumeQueueExt })},
	{"mappedFileSizeConsumeQueueExt", "50331648", "bytes of an extension file",
		number(func(c *Config) *int64 { return &c.Store.ConsumeQueueExtBytes }, 64, math.MaxInt32)},
}
