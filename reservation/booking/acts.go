package booking

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// Cloud does what events call for on the servers.
type Cloud interface {
	// Carry does the work of an event. It may be called again for the same event, by
	// another replica too, after one that was working on it has gone. The owner reads
	// the message of its fault, and does not know the hosts of what has not begun;
	// the cause is for the audit trail and the log.
	Carry(ctx context.Context, r reservation.Reservation, event reservation.EventType) error
}

const (
	// soonest is after how many seconds an event that has failed is tried again, latest
	// after how many one that goes on failing is. In between the time that it is late
	// doubles from try to try.
	soonest, latest = 2, 60
	// endTries is for how many seconds it is tried to carry out an end that fails. What
	// is left then is for the operator, whom the doctor tells.
	endTries = 24 * 3600
	// concludeEvery is how often it is tried to store how an event went.
	concludeEvery = time.Second
)

// actions are what the audit trail calls the events.
var actions = map[reservation.EventType]reservation.Action{
	reservation.StartEvent:     reservation.Start,
	reservation.BeforeEndEvent: reservation.WarnOfEnd,
	reservation.EndEvent:       reservation.End,
}

// begun gives r while a replica carries its event i out.
func begun(r reservation.Reservation, i int, replica string, now span.Instant) (reservation.Reservation, error) {
	status, err := lifecycle.Begin(r.Status, r.Events[i].Type)
	if err != nil {
		return r, err
	}
	e := r.Events[i]
	e.State, e.Holder = reservation.Running, replica
	return withEvent(r, i, e, status, now), nil
}

// finished gives r after its event i, which has begun.
func finished(r reservation.Reservation, i int, now span.Instant) (reservation.Reservation, error) {
	status, err := lifecycle.Finish(r.Status, r.Events[i].Type)
	if err != nil {
		return r, err
	}
	e := r.Events[i]
	e.State, e.Done, e.Holder, e.Until, e.Detail = reservation.Done, now, "", 0, ""
	if late := now - e.Time; late > 0 {
		e.Detail = fmt.Sprintf("%v after its time", period(int64(late)))
	}
	return withEvent(r, i, e, status, now), nil
}

// carried gives r after its event i where there is no work to do on the cloud.
func carried(r reservation.Reservation, i int, now span.Instant) (reservation.Reservation, error) {
	version := r.Version
	r, err := begun(r, i, "", now)
	if err != nil {
		return r, err
	}
	r, err = finished(r, i, now)
	r.Version = version + 1
	return r, err
}

// postponed gives r with its event i, which has failed, due again, at last at the latest.
func postponed(r reservation.Reservation, i int, why error, last, now span.Instant) reservation.Reservation {
	e := r.Events[i]
	wait := int64(soonest)
	if e.Until != 0 {
		wait = min(max(int64(now-e.Time), soonest), latest)
	}
	e.State, e.Holder, e.Detail = reservation.Due, "", fault.Of(why).Message
	e.Until = min(now.Add(wait), last)
	return withEvent(r, i, e, r.Status, now)
}

// lastTry is when an event that still fails is given up. An end may be long overdue
// when it is tried for the first time, so its time counts from the first time that
// this replica tried it again; after a restart, anew.
func (e *entry) lastTry(event reservation.Event) span.Instant {
	switch {
	case event.Type != reservation.EndEvent:
		return e.r.Span.End
	case e.endRetried == 0:
		return span.Forever
	}
	return e.endRetried.Add(endTries)
}

// retry notes that an event that is due has failed before, and hopeless says that it
// has until it was too late.
func (e *entry) retry(event reservation.Event, now span.Instant) {
	if event.Type == reservation.EndEvent && event.Until != 0 && e.endRetried == 0 {
		e.endRetried = now
	}
}

func (e *entry) hopeless(event reservation.Event, now span.Instant) bool {
	return event.Until != 0 && now >= e.lastTry(event)
}

// givenUp gives r after an event that is hopeless, and that event's place in the log.
func givenUp(r reservation.Reservation, e reservation.Event, now span.Instant) (reservation.Reservation, int, error) {
	status, err := lifecycle.Next(r.Status, lifecycle.Fail)
	if err != nil {
		return r, 0, err
	}
	detail := fmt.Sprintf("its %s was given up: %s", e.Type, e.Detail)
	r = closed(r, status, happened(reservation.FailedEvent, now, detail), now)
	return r, len(r.Events) - 1, nil
}

func withEvent(r reservation.Reservation, i int, e reservation.Event, status reservation.Status, now span.Instant) reservation.Reservation {
	r.Status, r.Updated, r.Version = status, now, r.Version+1
	r.Events = slices.Clone(r.Events)
	r.Events[i] = e
	return r
}

// act does on the cloud what the event i of r calls for and stores how it went.
func (d *Desk) act(ctx context.Context, r reservation.Reservation, i int) {
	ran := r.Events[i]
	why := d.options.Cloud.Carry(ctx, r, ran.Type)
	if why != nil {
		why = fmt.Errorf("carry out %s of reservation %s: %w", ran.Type, r.ID, why)
	}
	defer d.working.end(r.ID)
	// Until it is stored, nobody else would take the event up.
	for {
		happened, err := d.conclude(context.WithoutCancel(ctx), r.ID, ran, why)
		d.working.add(r.ID, happened, errors.Join(why, err))
		d.wake()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(concludeEvery):
		}
	}
}

// conclude stores that an event is done, or due again for that reason. Where it is
// in other hands by now, or the reservation was given up, there is nothing to store.
func (d *Desk) conclude(ctx context.Context, id string, ran reservation.Event, why error) (done []Happening, err error) {
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
			return nil, fmt.Errorf("store how %s of reservation %s went: %w", ran.Type, id, err)
		}
	}
	return nil, fmt.Errorf("store how %s of reservation %s went: %w", ran.Type, id, reservation.ErrStale)
}

// conclusion begins the end of an event that this replica carries out, nil where it
// does so no more. Where an attempt is in doubt it fails with ErrStale.
func (d *Desk) conclusion(e *entry, ran reservation.Event, why error) (*attempt, int, error) {
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
		a.cause.Action, a.cause.Detail = reservation.PutOff, fault.Of(why).Error()
		a.next = postponed(e.r, i, why, e.lastTry(ran), now)
		return d.begin(a), i, nil
	}
	a.cause.Action = actions[ran.Type]
	next, err := finished(e.r, i, now)
	if err != nil {
		return nil, 0, err
	}
	a.next = next
	return d.begin(a), i, nil
}

// TakeOver carries out the events that run in the hands of a replica that is gone, or
// of this one though it does not work on them: it never learned that they had begun.
func (d *Desk) TakeOver(ctx context.Context, gone func(replica string) bool) error {
	lost := func(id string) func(e reservation.Event) bool {
		return func(e reservation.Event) bool {
			if e.State != reservation.Running {
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

// Wait waits until nothing is being carried out.
func (d *Desk) Wait() { d.working.running.Wait() }

// work is what is being carried out, and what has become of it since it was last
// asked for.
type work struct {
	running sync.WaitGroup

	mu     sync.Mutex
	acting map[string]int // how many work on the cloud, by reservation
	done   []Happening
	failed map[string]error
}

func (w *work) begin(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.acting == nil {
		w.acting = make(map[string]int)
	}
	w.acting[id]++
}

func (w *work) end(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.acting[id]--; w.acting[id] == 0 {
		delete(w.acting, id)
	}
}

func (w *work) on(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.acting[id] > 0
}

func (w *work) add(id string, done []Happening, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.done = append(w.done, done...)
	if err != nil {
		if w.failed == nil {
			w.failed = make(map[string]error)
		}
		w.failed[id] = err
	}
}

func (w *work) take() (done []Happening, failed map[string]error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	done, failed = w.done, w.failed
	w.done, w.failed = nil, nil
	return done, failed
}
