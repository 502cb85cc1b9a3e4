package dispatch

import (
	"context"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// departures are the evictions under way in a Dispatcher. What their victims leave over is
// free only when they are gone, so that who finds no room waits for that.
type departures struct {
	mu    sync.Mutex
	n     int
	ended chan struct{} // closed when the next of them ends; nil where there is none
}

func (l *departures) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n++; l.ended == nil {
		l.ended = make(chan struct{})
	}
}

func (l *departures) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.ended)
	l.ended = nil
	if l.n--; l.n > 0 {
		l.ended = make(chan struct{})
	}
}

// next gives what is closed when the next of them ends; nil where there is none.
func (l *departures) next() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// awaits says, of a request for which there was no place, whether to choose again, since an
// eviction has ended that was under way then. In all it waits no longer than for one.
func (t *task) awaits(ctx context.Context, refusal error) bool {
	if t.ended == nil || t.request.Preemptible || !fault.Is(refusal, fault.Conflict) {
		return false
	}
	release, ok := t.slot()
	if !ok {
		return false
	}
	defer release()
	if t.until.IsZero() {
		t.until = t.Now().Add(t.Notice + t.EvictionTimeout)
	}
	ctx, cancel := context.WithTimeout(ctx, t.until.Sub(t.Now()))
	defer cancel()
	select {
	case <-t.ended:
		t.clarified = false
		return true
	case <-ctx.Done():
		return false
	}
}

// slot lets the request wait for victims that LeaveFirst, until release is called, where not
// too many do so already.
func (d *Dispatcher) slot() (release func(), ok bool) {
	if d.moves == nil {
		return func() {}, true
	}
	select {
	case d.moves <- struct{}{}:
		return func() { <-d.moves }, true
	default:
		return nil, false
	}
}
