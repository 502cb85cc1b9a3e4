// SPDX-License-Identifier: Apache-2.0

package events

import (
	"fmt"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Limits bound the streams of GET /v1/events.
type Limits struct {
	// Most is how many there may be at once, 0 means 2000; MostPerProject is how many one project may
	// have, 0 means 200.
	Most, MostPerProject int
	// Heartbeat is the time between lines without an event; 0 means 15 seconds.
	Heartbeat time.Duration
	// Longest is how long a stream lasts; 0 means 15 minutes. Then its client resumes it, and its
	// token is checked again.
	Longest time.Duration
	// WriteTimeout is how long a write may take before its client is dropped; 0 means 10 seconds.
	WriteTimeout time.Duration
}

// withDefaults returns the limits with the defaults in place of zeros.
func (o Limits) withDefaults() Limits {
	set := func(to *time.Duration, usual time.Duration) {
		if *to == 0 {
			*to = usual
		}
	}
	set(&o.Heartbeat, 15*time.Second)
	set(&o.Longest, 15*time.Minute)
	set(&o.WriteTimeout, 10*time.Second)
	if o.Most == 0 {
		o.Most = 2000
	}
	if o.MostPerProject == 0 {
		o.MostPerProject = 200
	}
	return o
}

// streams are the open streams.
type streams struct {
	limits Limits
	over   chan struct{} // is closed when the service stops
	once   sync.Once

	mu       sync.Mutex
	open     int
	projects map[string]int // open, by caller
}

func newStreams(o Limits) *streams {
	return &streams{limits: o.withDefaults(), over: make(chan struct{}), projects: make(map[string]int)}
}

// end ends all streams and refuses new ones.
func (s *streams) end() { s.once.Do(func() { close(s.over) }) }

// ended reports whether end was called.
func (s *streams) ended() bool {
	select {
	case <-s.over:
		return true
	default:
		return false
	}
}

// enter counts a stream of a caller; it fails if there are too many.
func (s *streams) enter(caller string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.open >= s.limits.Most:
		return &fault.Error{
			Kind: fault.Unavailable, Message: fmt.Sprintf("this process serves %d event streams already; try again later", s.open), RetryAfter: serving.Overloaded,
		}
	case s.projects[caller] >= s.limits.MostPerProject:
		return &fault.Error{
			Kind: fault.TooMany, RetryAfter: serving.Overloaded,
			Message: fmt.Sprintf("your project has %d event streams already; close some of them", s.projects[caller]),
		}
	}
	s.open++
	s.projects[caller]++
	return nil
}

func (s *streams) leave(caller string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open--
	if s.projects[caller]--; s.projects[caller] == 0 {
		delete(s.projects, caller)
	}
}

func (s *streams) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}
