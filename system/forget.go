package system

import "github.com/actormq/actormq/messages"

// forgettable is what tells the flusher of a slave up to where its log need not be in memory: nobody has read there since it was opened, and
// who comes once the master has failed reads near the end. nil for others, and where the log is left in memory as the system sees fit.
func (s *Store) forgettable() func() messages.PhysicalOffset {
	if s.opt.Role != messages.Slave || s.opt.HAUnreadMemory < 0 {
		return nil
	}
	return func() messages.PhysicalOffset {
		if s.read.Load() {
			return 0
		}
		return messages.PhysicalOffset(s.dispatched.Load() - s.opt.HAUnreadMemory)
	}
}
