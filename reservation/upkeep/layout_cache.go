// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

const (
	// readingValid is for how many seconds a reading of the layout is valid.
	readingValid = 60
	// readingLimit is how long a reading may take.
	readingLimit = 30 * time.Second
)

// layoutCache reads the layout: what Almanac has in OpenStack (fence.Layout). Callers that wait at
// the same time share one reading, and later callers may use it for readingValid seconds.
type layoutCache struct {
	backend FenceBackend
	now     func() span.Instant
	shared  job.Shared[fence.Layout]

	mu      sync.Mutex
	last    *layoutReading // that succeeded
	changes int64
	changed map[string]int64 // by reservation and by host, its last change if that is later than last
}

// layoutReading is the result of one reading of the layout.
type layoutReading struct {
	begun   span.Instant
	changes int64 // made before it
	layout  fence.Layout
}

func newLayoutCache(backend FenceBackend, now func() span.Instant) *layoutCache {
	l := &layoutCache{backend: backend, now: now}
	l.shared = job.Shared[fence.Layout]{Read: l.read, Limit: readingLimit}
	return l
}

// fresh returns the layout from a reading that begins after the call.
func (l *layoutCache) fresh(ctx context.Context) (fence.Layout, error) { return l.shared.Get(ctx) }

func (l *layoutCache) read(ctx context.Context) (fence.Layout, error) {
	l.mu.Lock()
	mine := &layoutReading{begun: l.now(), changes: l.changes}
	l.mu.Unlock()
	var err error
	if mine.layout, err = l.backend.Layout(ctx); err != nil {
		return fence.Layout{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = mine
	maps.DeleteFunc(l.changed, func(_ string, change int64) bool { return change <= mine.changes })
	return mine.layout, nil
}

// recent returns the last reading if it is valid for the reservation on the hosts: it is not too
// old, and nothing of the reservation or the hosts has changed since. ok is false otherwise.
func (l *layoutCache) recent(id string, hosts []string) (fence.Layout, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	layout, good := l.latest()
	if !good {
		return fence.Layout{}, false
	}
	for _, name := range append([]string{id}, hosts...) {
		if l.changed[name] > l.last.changes {
			return fence.Layout{}, false
		}
	}
	return layout, true
}

// shown returns the last reading if it is not too old, whatever has changed since.
func (l *layoutCache) shown() (fence.Layout, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest()
}

// latest returns the last reading if it is not too old. The caller holds mu.
func (l *layoutCache) latest() (fence.Layout, bool) {
	if l.last == nil || l.now() >= l.last.begun.Add(readingValid) {
		return fence.Layout{}, false
	}
	return l.last.layout, true
}

// outdate records that a step was, or may have been, carried out, so that readings before it are
// out of date for its host and reservation.
func (l *layoutCache) outdate(step fence.Step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(map[string]int64)
	}
	l.changes++
	l.changed[step.Reservation], l.changed[step.Host] = l.changes, l.changes
}
