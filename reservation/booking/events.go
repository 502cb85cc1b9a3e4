package booking

import (
	"context"
	"fmt"
	"slices"

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

func (d *Desk) wake() {
	select {
	case d.woken <- struct{}{}:
	default:
	}
}

// CarryOut carries out all events that are due, each stored before the next, and
// gives those done. One that fails is due again; it does not keep others back.
func (d *Desk) CarryOut(ctx context.Context) (done []Happening, failed map[string]error) {
	d.mu.Lock()
	ids := d.agenda.until(d.options.Now())
	d.mu.Unlock()
	failed = make(map[string]error)
	for _, id := range ids {
		happened, err := d.carryOut(ctx, id)
		done = append(done, happened...)
		if err != nil {
			failed[id] = err
		}
	}
	return done, failed
}

// carryOut carries out what is due for one reservation, in order.
func (d *Desk) carryOut(ctx context.Context, id string) (done []Happening, err error) {
	e, ok := d.entry(id)
	if !ok {
		return nil, nil
	}
	e.changing.Lock()
	defer e.changing.Unlock()
	for !e.over {
		now := d.options.Now()
		i, ok := lifecycle.Due(&e.r)
		if !ok || e.r.Events[i].Time > now {
			break
		}
		next, err := carried(e.r, i, now)
		if err == nil {
			err = d.options.Records.Update(ctx, next)
		}
		if err != nil {
			d.tryAgain(e)
			return done, fmt.Errorf("carry out %s of reservation %s: %w", e.r.Events[i].Type, id, err)
		}
		done = append(done, Happening{next, next.Events[i]})
		if d.note(e, next); !next.Status.Live() {
			d.drop(e, next.Claims)
		}
	}
	return done, nil
}

// carried gives r after its event i.
func carried(r reservation.Reservation, i int, now span.Instant) (reservation.Reservation, error) {
	status, err := lifecycle.Carry(r.Status, r.Events[i].Type)
	if err != nil {
		return r, err
	}
	r.Status, r.Updated, r.Version = status, now, r.Version+1
	r.Events = slices.Clone(r.Events)
	r.Events[i].State, r.Events[i].Done = reservation.Done, now
	if late := now - r.Events[i].Time; late > 0 {
		r.Events[i].Detail = fmt.Sprintf("%v after its time", period(int64(late)))
	}
	return r, nil
}

func (d *Desk) note(e *entry, r reservation.Reservation) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.replace(e, r)
}

// tryAgain enters the next event again, which was taken out of the agenda.
func (d *Desk) tryAgain(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.agenda.enter(&e.r)
}

// replace puts a reservation's new state in place and enters its next event where
// that is another one than before; mu is held.
func (d *Desk) replace(e *entry, r reservation.Reservation) {
	before, had := nextDue(&e.r)
	d.count(&e.r, -1)
	e.r = r
	d.count(&e.r, 1)
	if after, has := nextDue(&e.r); has && (!had || after != before) {
		d.agenda.enter(&e.r)
	}
}

// nextDue is the event of r that is due next.
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

// Prune forgets claims that are over.
func (d *Desk) Prune() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pruned = max(d.pruned, d.options.Now())
	d.calendar.Prune(d.pruned)
}
