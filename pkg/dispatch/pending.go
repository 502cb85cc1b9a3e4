package dispatch

import (
	"context"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// pendingEvictions counts the evictions under way. The room that their victims leave over is
// free when they are gone, so that a request that finds no room waits for that.
type pendingEvictions struct {
	mu    sync.Mutex
	n     int
	ended chan struct{} // closed when the next of them ends; nil where there is none
}

func (p *pendingEvictions) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n++; p.ended == nil {
		p.ended = make(chan struct{})
	}
}

func (p *pendingEvictions) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ended)
	p.ended = nil
	if p.n--; p.n > 0 {
		p.ended = make(chan struct{})
	}
}

// next returns a channel that is closed when the next of them ends; nil where there is none.
func (p *pendingEvictions) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// awaitEviction reports whether to choose again for a request that found no place, because an
// eviction has ended that was under way then. All its waits are no longer than one eviction.
func (t *task) awaitEviction(ctx context.Context, refusal error) bool {
	if t.ended == nil || t.request.Preemptible || !fault.Is(refusal, fault.Conflict) {
		return false
	}
	release, ok := t.dispatcher.slot()
	if !ok {
		return false
	}
	defer release()
	if t.until.IsZero() {
		t.until = t.dispatcher.Now().Add(t.dispatcher.Evictor.Duration())
	}
	ctx, cancel := context.WithTimeout(ctx, t.until.Sub(t.dispatcher.Now()))
	defer cancel()
	select {
	case <-t.ended:
		t.looked = false
		return true
	case <-ctx.Done():
		return false
	}
}

// slot lets a request wait for victims until it calls release; ok reports whether MaxWaiting
// allows another.
func (d *Dispatcher) slot() (release func(), ok bool) {
	if d.slots == nil {
		return func() {}, true
	}
	select {
	case d.slots <- struct{}{}:
		return func() { <-d.slots }, true
	default:
		return nil, false
	}
}
