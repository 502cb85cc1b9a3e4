package upkeep

import (
	"context"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

const (
	// lookGood is for how many seconds a look at the layout is good.
	lookGood = 60
	// lookLimit is how long a look may take.
	lookLimit = 30 * time.Second
)

// looks shares looks at the layout: one look serves all who asked before it began.
type looks struct {
	ground FenceBackend
	now    func() span.Instant
	one    chan struct{} // full while one is taken

	mu      sync.Mutex
	next    *look // has not begun; nil where nobody has asked
	last    *look // that went well
	changes int64
	changed map[string]int64 // by reservation and by host, when the layout was last changed
}

// look is what was seen of the layout.
type look struct {
	begun   span.Instant
	changes int64 // made before it
	over    chan struct{}
	layout  fence.Layout
	err     error
}

// fresh looks at the layout as it is from now on.
func (l *looks) fresh(ctx context.Context) (fence.Layout, error) {
	l.mu.Lock()
	if l.next == nil {
		l.next = &look{over: make(chan struct{})}
		go l.take(context.WithoutCancel(ctx), l.next)
	}
	mine := l.next
	l.mu.Unlock()
	select {
	case <-ctx.Done():
		return fence.Layout{}, ctx.Err()
	case <-mine.over:
		return mine.layout, mine.err
	}
}

func (l *looks) take(ctx context.Context, mine *look) {
	l.one <- struct{}{}
	defer func() { <-l.one }()
	l.mu.Lock()
	l.next = nil
	mine.begun, mine.changes = l.now(), l.changes
	l.mu.Unlock()
	ctx, stop := context.WithTimeout(ctx, lookLimit)
	defer stop()
	if mine.layout, mine.err = l.ground.Layout(ctx); mine.err == nil {
		l.mu.Lock()
		l.last = mine
		l.mu.Unlock()
	}
	close(mine.over)
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
