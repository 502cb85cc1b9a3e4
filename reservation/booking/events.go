// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Events carries out what is due: the starts, warnings and ends of reservations.
type Events struct {
	*memory
	*Following
	*writer
	slots   contextMutex // for events that are carried out concurrently
	working work
	// lastLook looks once more whether there is room for a waiting reservation, whose wait ends.
	lastLook func(ctx context.Context, id string) error
}

func newEvents(m *memory, f *Following, w *writer) *Events {
	return &Events{memory: m, Following: f, writer: w, slots: newSlots(max(1, m.options.Parallel))}
}

// Woken receives a value when an event may be due earlier than before.
func (d *Events) Woken() <-chan struct{} { return d.woken }

// NextDue returns a time before which no event is due; false if there are none. After that time, an
// event may be due, unless its reservation has changed.
func (d *Events) NextDue() (at span.Instant, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.agenda) == 0 {
		return 0, false
	}
	return d.agenda[0].at, true
}

// News receives a value when the promises have changed, in this process or through another replica.
func (p *Promises) News() <-chan struct{} { return p.news }

// CarryOut carries out all due events, and returns those that are done, including those that an
// earlier call began. It stores each event before it begins the next one of the same reservation. A
// failed event becomes due again. With Parallel, CarryOut waits neither for storing nor for the
// cloud, and one event does not delay another.
func (d *Events) CarryOut(ctx context.Context) (done []Happening, failed map[string]error) {
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
func (d *Events) byReplica(a, b appointment) int {
	return cmp.Or(endsFirst(a.ends, b.ends), cmp.Compare(d.place(a.id), d.place(b.id)), cmp.Compare(a.id, b.id))
}

func (d *Events) place(id string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(d.options.Replica + id)) // always succeeds
	return h.Sum64()
}

func (d *Events) putBack(due []appointment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range due {
		heap.Push(&d.agenda, a)
	}
}

// carryOut carries out the due events of one reservation, in order. It also takes over a running
// event if lost, which may be nil, reports that no replica works on it.
func (d *Events) carryOut(ctx context.Context, at appointment, lost func(reservation.Event) bool) (done []Happening, err error) {
	id := at.id
	e, ok := d.entry(id)
	if !ok {
		return nil, nil
	}
	if err := d.lastLook(ctx, id); err != nil {
		d.tryAgain(e)
		return nil, fmt.Errorf("look for room for reservation %s at the end of its wait: %w", id, err)
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
func (d *Events) dueAttempt(e *entry, appointed span.Instant, lost func(reservation.Event) bool) (*attempt, int, error) {
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
	a.cause.Action = lifecycle.Action(event.Type)
	var err error
	switch {
	case e.hopeless(event, now):
		a.next, i, err = givenUp(e.r, event, now)
		a.cause.Detail = event.Detail
	case event.Type == reservation.ExpireEvent:
		a.next, err = planning.Expired(e.r, now)
		i = len(a.next.Events) - 1
		a.cause.Detail = a.next.Events[i].Detail
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
func (d *Events) tryAgain(e *entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !e.over {
		d.agenda.enter(&e.r)
	}
}

// cloudOf returns what carries out the events of a reservation in the cloud; nil if nothing does.
func (d *Events) cloudOf(r *reservation.Reservation) Cloud {
	if r.Kind == reservation.Addresses {
		return d.options.Networks
	}
	return d.options.Cloud
}

// act carries out the event i of r in the cloud and stores the result.
func (d *Events) act(ctx context.Context, r reservation.Reservation, i int) {
	ran := r.Events[i]
	why := d.cloudOf(&r).Carry(ctx, r, ran.Type)
	if why != nil {
		why = fmt.Errorf("carry out %s of reservation %s: %w", ran.Type, r.ID, why)
	}
	defer d.working.end(r.ID)
	// No other replica takes the event over until its result is stored.
	for {
		happened, err := d.conclude(context.WithoutCancel(ctx), r.ID, ran, why)
		d.working.add(r.ID, happened, errors.Join(why, err))
		d.wake()
		if err == nil || job.Pause(ctx, concludeEvery) != nil {
			return
		}
	}
}

// conclude stores that an event is done, or, if why is not nil, due again. If another replica
// has taken the event over, or the reservation was canceled, there is nothing to store.
func (d *Events) conclude(ctx context.Context, id string, ran reservation.Event, why error) (done []Happening, err error) {
	e, ok := d.entry(id)
	if !ok {
		return nil, nil
	}
	if err := e.changing.Enter(ctx, byEvent); err != nil {
		return nil, err
	}
	defer e.changing.Leave(byEvent)
	for range tries {
		a, i, err := d.conclusion(e, ran, why)
		if err == nil && a == nil {
			return nil, nil
		}
		if err == nil {
			err = d.commit(ctx, a)
		}
		if err == nil && why == nil {
			return []Happening{{a.next, a.next.Events[i]}}, nil
		}
		if errors.Is(err, reservation.ErrStale) {
			err = d.poll(ctx, Recall{IDs: []string{id}})
		}
		if err != nil {
			return nil, fmt.Errorf("store the result of %s of reservation %s: %w", ran.Type, id, err)
		}
	}
	return nil, fmt.Errorf("store the result of %s of reservation %s: %w", ran.Type, id, reservation.ErrStale)
}

// conclusion returns the attempt that stores the result of a running event, or nil if this replica
// no longer carries the event out. It fails with ErrStale if it is unknown whether another attempt
// was stored.
func (d *Events) conclusion(e *entry, ran reservation.Event, why error) (*attempt, int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.Index(e.r.Events, ran)
	switch {
	case i < 0 || e.over:
		return nil, 0, nil
	case e.attempt != nil:
		return nil, 0, reservation.ErrStale
	}
	a := &attempt{entry: e, before: e.r}
	now := d.options.Now()
	if why != nil {
		a.cause.Action, a.cause.Detail = reservation.ActionPutOff, fault.Of(why).Error()
		a.next = postponed(e.r, i, why, e.lastTry(ran), now)
		d.begin(a)
		return a, i, nil
	}
	a.cause.Action = lifecycle.Action(ran.Type)
	next, err := finished(e.r, i, now)
	if err != nil {
		return nil, 0, err
	}
	a.next = next
	d.begin(a)
	return a, i, nil
}

// TakeOver carries out the running events of replicas that have stopped, and running events that
// belong to this replica although it does not work on them, because it never received the
// confirmation that they were stored as begun.
func (d *Events) TakeOver(ctx context.Context, gone func(replica string) bool) error {
	lost := func(id string) func(e reservation.Event) bool {
		return func(e reservation.Event) bool {
			if e.State != reservation.EventRunning {
				return false
			}
			return e.Holder == d.options.Replica && !d.working.on(id) || e.Holder != d.options.Replica && gone(e.Holder)
		}
	}
	var ids []string
	for r := range d.state().live.byStart.until(span.Forever) {
		if slices.ContainsFunc(r.Events, lost(r.ID)) {
			ids = append(ids, r.ID)
		}
	}
	var errs []error
	for _, id := range ids {
		happened, err := d.carryOut(ctx, appointment{id: id, at: math.MinInt64}, lost(id))
		d.working.add(id, happened, nil)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Wait waits until no event is being carried out.
func (d *Events) Wait() { d.working.running.Wait() }
