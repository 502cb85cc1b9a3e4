package booking

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"

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

func (d *Desk) wake() {
	select {
	case d.woken <- struct{}{}:
	default:
	}
}

// CarryOut carries out all events that are due, each stored before the next of the
// same reservation, and gives those done. One that fails is due again; it does not
// keep others back, and neither does one that takes long on the cloud: that goes on
// by itself and is given when it is done.
func (d *Desk) CarryOut(ctx context.Context) (done []Happening, failed map[string]error) {
	d.mu.Lock()
	due := d.agenda.until(d.options.Now())
	d.mu.Unlock()
	for _, wave := range d.waves(due) {
		var running sync.WaitGroup
		slots := make(chan struct{}, max(1, d.options.Parallel))
		for _, id := range wave {
			slots <- struct{}{}
			running.Go(func() {
				happened, err := d.carryOut(ctx, id, nil)
				d.working.add(id, happened, err)
				<-slots
			})
		}
		running.Wait()
	}
	return d.working.take()
}

// waves orders what is due. What ends goes first: it makes room for what starts.
// Replicas take the rest in different orders, so as not to be in each other's way.
func (d *Desk) waves(due []appointment) [][]string {
	var ends, others []string
	for _, a := range due {
		if a.ends && d.options.Parallel > 0 {
			ends = append(ends, a.id)
		} else {
			others = append(others, a.id)
		}
	}
	if d.options.Parallel > 0 {
		for _, wave := range [][]string{ends, others} {
			slices.SortFunc(wave, func(a, b string) int { return cmp.Compare(d.turn(a), d.turn(b)) })
		}
	}
	return [][]string{ends, others}
}

func (d *Desk) turn(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.options.Replica + id)) // never fails
	return h.Sum64()
}

// carryOut carries out what is due for one reservation, in order; also what lost
// says of a running event that its replica is gone.
func (d *Desk) carryOut(ctx context.Context, id string, lost func(reservation.Event) bool) (done []Happening, err error) {
	e, ok := d.entry(id)
	if !ok {
		return nil, nil
	}
	e.changing.Lock()
	defer e.changing.Unlock()
	for range tries {
		a, i, err := d.dueAttempt(e, lost)
		if a == nil || err != nil {
			return done, err
		}
		err = d.commit(ctx, a)
		switch {
		case err == nil && d.options.Cloud != nil:
			d.working.running.Go(func() { d.act(ctx, a.next, i) })
			return done, nil
		case err == nil:
			done = append(done, Happening{a.next, a.next.Events[i]})
			continue
		case errors.Is(err, reservation.ErrStale): // another replica may have done it
			if _, err = d.poll(ctx, Recall{IDs: []string{id}}); err == nil {
				continue
			}
		}
		d.tryAgain(e)
		return done, fmt.Errorf("carry out %s of reservation %s: %w", a.next.Events[i].Type, id, err)
	}
	d.tryAgain(e)
	return done, fmt.Errorf("carry out what is due for reservation %s: %w", id, reservation.ErrStale)
}

// dueAttempt begins the next event of a reservation and gives its place in the log,
// nil where none is due.
func (d *Desk) dueAttempt(e *entry, lost func(reservation.Event) bool) (*attempt, int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i, ok := lifecycle.Due(&e.r)
	if !ok || e.over {
		return nil, 0, nil
	}
	event, now := e.r.Events[i], d.options.Now()
	at, due := lifecycle.At(event)
	if due && at > now || !due && (lost == nil || !lost(event)) {
		return nil, 0, nil
	}
	a := &attempt{entry: e, before: e.r}
	var err error
	if d.options.Cloud != nil {
		a.cause.Action = reservation.BeginEvent
		a.next, err = begun(e.r, i, d.options.Replica, now)
	} else {
		a.cause.Action = actions[event.Type]
		a.next, err = carried(e.r, i, now)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("carry out %s of reservation %s: %w", event.Type, e.r.ID, err)
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
