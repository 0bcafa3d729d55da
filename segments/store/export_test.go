package store

// Ahead sets how much of the log is read ahead of a scan: by so many goroutines, in stretches of so many bytes, and how many keys are
// kept for the index. Zero stands for the default.
func (o Options) Ahead(readers int, bytes int64, keys int) Options {
	o.ahead = aheadLimits{readers: readers, bytes: bytes, keys: keys}
	return o
}
