package extension

import (
	"time"
)

// Policy says how failures of an extension are borne. The zero value of a field is its default.
type Policy struct {
	Failures   int           // panics and stalls within Window before it is parked; default 5
	Window     time.Duration // default 1 min
	Backoff    time.Duration // before it is tried again, doubled with each failure in a row; default 100 ms
	MaxBackoff time.Duration // default 10 s
	StallAfter time.Duration // a call that takes longer is stalled, and its context is cancelled; default 30 s
}

// Defaults returns the policy with every zero field filled in.
func (p Policy) Defaults() Policy {
	if p.Failures <= 0 {
		p.Failures = 5
	}
	for field, value := range map[*time.Duration]time.Duration{
		&p.Window: time.Minute, &p.Backoff: 100 * time.Millisecond, &p.MaxBackoff: 10 * time.Second, &p.StallAfter: 30 * time.Second,
	} {
		if *field <= 0 {
			*field = value
		}
	}
	return p
}

// strikes decides what follows a failure.
type strikes struct {
	policy Policy
	row    int         // failures since the last success
	grave  []time.Time // panics and stalls within the window, the oldest first
}

// failed notes a failure and tells how long to wait, or that nothing is tried any more.
func (s *strikes) failed(now time.Time, grave bool) (pause time.Duration, park bool) {
	s.row++
	pause = s.policy.Backoff
	for i := 1; i < s.row && pause < s.policy.MaxBackoff; i++ {
		pause *= 2
	}
	if grave {
		for len(s.grave) > 0 && now.Sub(s.grave[0]) > s.policy.Window {
			s.grave = s.grave[1:]
		}
		s.grave = append(s.grave, now)
	}
	return min(pause, s.policy.MaxBackoff), len(s.grave) >= s.policy.Failures
}

func (s *strikes) succeeded() { s.row = 0 }

// forget begins anew after a resume.
func (s *strikes) forget() { s.row, s.grave = 0, nil }
