package segments

// aheadBytes is written with zeros at a time. The system takes as large a piece of memory for it, at most, and whoever waits for it
// waits for no more than that.
const aheadBytes = 256 << 10

var zeros [aheadBytes]byte

// WriteAhead says that nothing of the segment from there on, where all is zero, may be written to before Prepare has been there: a missing
// page that is touched through the map has the system zero as much as the device reads ahead, megabytes (docs/adr/0001). Before anybody
// else sees the segment.
func (s *Segment) WriteAhead(from int64) { s.prepared.Store(from) }

// Prepared is how much of the segment, from its start, may be written through the map; Size without WriteAhead.
func (s *Segment) Prepared() int64 { return s.prepared.Load() }

// Prepare writes zeros to the file until [0, to) at least is prepared, never behind what is. Any goroutine that holds the segment
// may call it, and waits for another one that does for 256 KiB at most. After an error the segment counts as prepared: that costs its
// owner page faults, or shows him the same error. Once the owner has left nothing is written any more.
func (s *Segment) Prepare(to int64) error {
	to = min(to, s.Size())
	for s.prepared.Load() < to {
		if err := s.prepareNext(to); err != nil {
			return err
		}
	}
	return nil
}

func (s *Segment) prepareNext(to int64) error {
	s.preparing.Lock()
	defer s.preparing.Unlock()
	from := s.prepared.Load()
	if from >= to {
		return nil
	}
	n := min(aheadBytes-from%aheadBytes, s.Size()-from)
	if _, err := s.file.WriteAt(zeros[:n], from); err != nil {
		s.prepared.Store(s.Size())
		return err
	}
	s.prepared.Store(from + n)
	return nil
}

// endAhead ends preparing for good, and waits for a write of zeros that is under way: whoever opens the file next writes where he likes,
// while one who was left behind, holding the segment, may still go on.
func (s *Segment) endAhead() {
	s.preparing.Lock()
	defer s.preparing.Unlock()
	s.prepared.Store(s.Size())
}
