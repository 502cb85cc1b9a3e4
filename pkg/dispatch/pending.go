// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"context"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// pendingEvictions counts the evictions in progress. Room that their victims leave and that the
// preemptors do not need becomes free when the victims are gone, so a request that finds no room
// waits for that.
type pendingEvictions struct {
	mu    sync.Mutex
	n     int
	ended chan struct{} // closed when the next of them ends; nil if there is none
}

// begin counts an eviction that is under way.
func (p *pendingEvictions) begin() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n++; p.ended == nil {
		p.ended = make(chan struct{})
	}
}

// end counts an eviction as over, and wakes those that wait for the next end.
func (p *pendingEvictions) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.ended)
	p.ended = nil
	if p.n--; p.n > 0 {
		p.ended = make(chan struct{})
	}
}

// next returns a channel that is closed when the next eviction ends; nil if none is in progress.
func (p *pendingEvictions) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

// awaitEviction waits until an eviction ends that was in progress when the request found no room.
// It returns true if the caller should choose hosts again, and false if there was none, too many
// requests wait already, or the time is over. All waits of a request together last at most as long
// as one eviction.
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
		t.looks = 0
		return true
	case <-ctx.Done():
		return false
	}
}

// slot allows a request to wait for victims until it calls release; ok is false if MaxWaiting
// requests wait already.
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
