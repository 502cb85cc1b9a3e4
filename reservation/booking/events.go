// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// Happening is an event that was carried out, and its reservation afterwards.
type Happening struct {
	Reservation reservation.Reservation
	Event       reservation.Event
}

// Woken receives a value when an event may be due earlier than before.
func (d *Service) Woken() <-chan struct{} { return d.woken }

func (d *Service) wake() { job.Poke(d.woken) }

// NextDue returns a time before which no event is due; false if there are none. After that time, an
// event may be due, unless its reservation has changed.
func (d *Service) NextDue() (at span.Instant, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.agenda) == 0 {
		return 0, false
	}
	return d.agenda[0].at, true
}

// News receives a value when the promises have changed, in this process or through another replica.
func (d *Service) News() <-chan struct{} { return d.news }

// CarryOut carries out all due events, and returns those that are done, including those that an
// earlier call began. It stores each event before it begins the next one of the same reservation. A
// failed event becomes due again. With Parallel, CarryOut waits neither for storing nor for the
// cloud, and one event does not delay another.
func (d *Service) CarryOut(ctx context.Context) (done []Happening, failed map[string]error) {
	d.mu.Lock()
	due := d.agenda.until(d.options.Now())
	d.mu.Unlock()
	if d.options.Parallel == 0 {
		for _, a := range due {
			happened, err := d.carryOut(ctx, a, nil)
			d.working.add(a.id, happened, err)
		}
		return d.working.drain()
	}
	slices.SortFunc(due, d.byReplica)
	for i, a := range due {
		if d.slots.lock(ctx) != nil {
			d.putBack(due[i:])
			break
		}
		d.working.running.Go(func() {
			defer d.slots.unlock()
			happened, err := d.carryOut(ctx, a, nil)
			if d.working.add(a.id, happened, err); len(happened) > 0 || err != nil {
				d.wake() // so that the next CarryOut returns the result
			}
		})
	}
	return d.working.drain()
}

// byReplica compares due events. Ends come first, since they make room for starts. The other events
// have a different order on each replica, so that replicas rarely compete for the same event.
func (d *Service) byReplica(a, b appointment) int {
	return cmp.Or(endsFirst(a.ends, b.ends), cmp.Compare(d.place(a.id), d.place(b.id)), cmp.Compare(a.id, b.id))
}

func (d *Service) place(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.options.Replica + id)) // always succeeds
	return h.Sum64()
}

func (d *Service) putBack(due []appointment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range due {
		heap.Push(&d.agenda, a)
	}
}

// carryOut carries out the due events of one reservation, in order. It also takes over a running
// event if lost, which may be nil, reports that no replica works on it.
func (d *Service) carryOut(ctx context.Context, at appointment, lost func(reservation.Event) bool) (done []Happening, err error) {
	id := at.id
	e, ok := d.entry(id)
	if !ok {
		return nil, nil
	}
	if err := e.changing.Enter(ctx, byEvent); err != nil {
		d.tryAgain(e)
		return nil, fmt.Errorf("carry out what is due for reservation %s: %w", id, err)
	}
	defer e.changing.Leave(byEvent)
	for range tries {
		a, i, err := d.dueAttempt(e, at.at, lost)
		if err == nil && a == nil {
			return done, nil
		}
		if err == nil {
			err = d.commit(ctx, a)
		}
		switch {
		case err == nil && a.next.Events[i].State == reservation.EventRunning:
			d.working.begin(id)
			d.working.running.Go(func() { d.act(ctx, a.next, i) })
			return done, nil
		case err == nil:
			done = append(done, Happening{a.next, a.next.Events[i]})
			continue
		case errors.Is(err, reservation.ErrStale): // another replica may have done it
			if err = d.poll(ctx, Recall{IDs: []string{id}}); err == nil {
				continue
			}
		}
		d.tryAgain(e)
		return done, fmt.Errorf("carry out what is due for reservation %s: %w", id, err)
	}
	d.tryAgain(e)
	return done, fmt.Errorf("carry out what is due for reservation %s: %w", id, reservation.ErrStale)
}

// dueAttempt begins the next event of a reservation and returns its index in the log, or a nil
// attempt if none is due. It fails with ErrStale if an attempt is in doubt. appointed is the time
// of the appointment, which is no longer in the agenda.
func (d *Service) dueAttempt(e *entry, appointed span.Instant, lost func(reservation.Event) bool) (*attempt, int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, ok := lifecycle.Due(&e.r)
	switch {
	case e.over || !ok:
		return nil, 0, nil
	case e.attempt != nil:
		return nil, 0, reservation.ErrStale
	}
	event, now := e.r.Events[i], d.options.Now()
	at, due := lifecycle.At(event)
	switch {
	case due && at > now:
		if at <= appointed { // the clock was set back since then
			d.agenda.enter(&e.r)
		}
		return nil, 0, nil
	case !due && (lost == nil || !lost(event)):
		return nil, 0, nil
	}
	e.noteRetry(event, now)
	a := &attempt{entry: e, before: e.r}
	a.cause.Action = actions[event.Type]
	var err error
	switch {
	case e.hopeless(event, now):
		a.next, i, err = givenUp(e.r, event, now)
		a.cause.Detail = event.Detail
	case d.cloudOf(&e.r) != nil && lifecycle.TakesWork(event.Type):
		a.cause.Action = reservation.ActionBeginEvent
		a.next, err = begun(e.r, i, d.options.Replica, now)
	default:
		a.next, err = carried(e.r, i, now)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", event.Type, err)
	}
	d.begin(a)
	return a, i, nil
}

// tryAgain puts the next event back into the agenda.
func (d *Service) tryAgain(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !e.over {
		d.agenda.enter(&e.r)
	}
}

// nextDue returns the next event of r.
func nextDue(r *reservation.Reservation) (reservation.Event, bool) {
	i, ok := lifecycle.Due(r)
	if !ok {
		return reservation.Event{}, false
	}
	return r.Events[i], true
}

// entry returns the entry of a live reservation.
func (d *Service) entry(id string) (*entry, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	e, ok := d.live[id]
	return e, ok
}
