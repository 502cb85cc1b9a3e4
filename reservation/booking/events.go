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

// Happening is a due event that was carried out.
type Happening struct {
	Reservation reservation.Reservation
	Event       reservation.Event
}

// Woken tells that something may be due earlier than before.
func (d *Desk) Woken() <-chan struct{} { return d.woken }

func (d *Desk) wake() { job.Poke(d.woken) }

// News tells that what is promised is another than before, here or through another
// replica.
func (d *Desk) News() <-chan struct{} { return d.news }

// CarryOut carries out all events that are due, each stored before the next of the
// same reservation, and gives those done, also those begun earlier. One that fails is
// due again. With Parallel, what takes long, to store or on the cloud, goes on by
// itself and keeps no other back.
func (d *Desk) CarryOut(ctx context.Context) (done []Happening, failed map[string]error) {
	d.mu.Lock()
	due := d.agenda.until(d.options.Now())
	d.mu.Unlock()
	if d.options.Parallel == 0 {
		for _, a := range due {
			happened, err := d.carryOut(ctx, a, nil)
			d.working.add(a.id, happened, err)
		}
		return d.working.take()
	}
	slices.SortFunc(due, d.byReplica)
	for i, a := range due {
		if d.slots.take(ctx) != nil {
			d.putBack(due[i:])
			break
		}
		d.working.running.Go(func() {
			defer d.slots.leave()
			happened, err := d.carryOut(ctx, a, nil)
			if d.working.add(a.id, happened, err); len(happened) > 0 || err != nil {
				d.wake() // to be told of
			}
		})
	}
	return d.working.take()
}

// byReplica orders what is due. What ends goes first: it makes room for what starts.
// Replicas take the rest in different orders, so as not to be in each other's way.
func (d *Desk) byReplica(a, b appointment) int {
	return cmp.Or(compareBool(b.ends, a.ends), cmp.Compare(d.place(a.id), d.place(b.id)), cmp.Compare(a.id, b.id))
}

func (d *Desk) place(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.options.Replica + id)) // never fails
	return h.Sum64()
}

func (d *Desk) putBack(due []appointment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range due {
		heap.Push(&d.agenda, a)
	}
}

// carryOut carries out what is due for one reservation, in order; also what lost
// says of a running event that nobody works on it any more.
func (d *Desk) carryOut(ctx context.Context, at appointment, lost func(reservation.Event) bool) (done []Happening, err error) {
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
		case err == nil && a.next.Events[i].State == reservation.Running:
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

// dueAttempt begins the next event of a reservation and gives its place in the log,
// nil where none is due. Where an attempt is in doubt it fails with ErrStale.
// appointed is the time of the appointment that was taken out of the agenda for it.
func (d *Desk) dueAttempt(e *entry, appointed span.Instant, lost func(reservation.Event) bool) (*attempt, int, error) {
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
		if at <= appointed { // the clock was set back since
			d.agenda.enter(&e.r)
		}
		return nil, 0, nil
	case !due && (lost == nil || !lost(event)):
		return nil, 0, nil
	}
	e.retry(event, now)
	a := &attempt{entry: e, before: e.r}
	a.cause.Action = actions[event.Type]
	var err error
	switch {
	case e.hopeless(event, now):
		a.next, i, err = givenUp(e.r, event, now)
		a.cause.Detail = event.Detail
	case d.options.Cloud != nil && lifecycle.TakesWork(event.Type):
		a.cause.Action = reservation.BeginEvent
		a.next, err = begun(e.r, i, d.options.Replica, now)
	default:
		a.next, err = carried(e.r, i, now)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", event.Type, err)
	}
	return d.begin(a), i, nil
}

// tryAgain enters the next event again, which was taken out of the agenda.
func (d *Desk) tryAgain(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !e.over {
		d.agenda.enter(&e.r)
	}
}

// nextDue is the event of r that comes next.
func nextDue(r *reservation.Reservation) (reservation.Event, bool) {
	i, ok := lifecycle.Due(r)
	if !ok {
		return reservation.Event{}, false
	}
	return r.Events[i], true
}

// entry gives a live reservation's entry.
func (d *Desk) entry(id string) (*entry, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	e, ok := d.live[id]
	return e, ok
}
