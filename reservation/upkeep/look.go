package upkeep

import (
	"context"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

const (
	// lookGood is for how many seconds a look at the layout is good.
	lookGood = 60
	// lookLimit is how long a look may take.
	lookLimit = 30 * time.Second
)

// looks shares looks at the layout.
type looks struct {
	ground FenceBackend
	now    func() span.Instant
	shared job.Shared[fence.Layout]

	mu      sync.Mutex
	last    *look // that succeeded
	changes int64
	changed map[string]int64 // by reservation and by host, when the layout was last changed
}

// look is what was seen of the layout.
type look struct {
	begun   span.Instant
	changes int64 // made before it
	layout  fence.Layout
}

func newLooks(ground FenceBackend, now func() span.Instant) *looks {
	l := &looks{ground: ground, now: now}
	l.shared = job.Shared[fence.Layout]{Read: l.read, Limit: lookLimit}
	return l
}

// fresh returns the layout as it is from now on.
func (l *looks) fresh(ctx context.Context) (fence.Layout, error) { return l.shared.Get(ctx) }

func (l *looks) read(ctx context.Context) (fence.Layout, error) {
	l.mu.Lock()
	mine := &look{begun: l.now(), changes: l.changes}
	l.mu.Unlock()
	var err error
	if mine.layout, err = l.ground.Layout(ctx); err != nil {
		return fence.Layout{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = mine
	return mine.layout, nil
}

// recent returns the last look if it is valid for the reservation on the hosts: it is not
// old, and nothing of theirs has changed since.
func (l *looks) recent(id string, hosts []string) (fence.Layout, bool) {
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

// shown returns the last look if it is not old, whatever has changed since.
func (l *looks) shown() (fence.Layout, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.latest()
}

// latest is shown under the lock.
func (l *looks) latest() (fence.Layout, bool) {
	if l.last == nil || l.now() >= l.last.begun.Add(lookGood) {
		return fence.Layout{}, false
	}
	return l.last.layout, true
}

// outdate notes that a step was, or may have been, done.
func (l *looks) outdate(step fence.Step) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.changed == nil {
		l.changed = make(map[string]int64)
	}
	l.changes++
	l.changed[step.Reservation], l.changed[step.Host] = l.changes, l.changes
}
