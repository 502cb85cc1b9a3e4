// SPDX-License-Identifier: Apache-2.0

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
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

const (
	// soonest and latest bound the number of seconds after which a failed event is
	// retried. In between, the time since the event was due doubles from retry to retry.
	soonest, latest = 2, 60
	// endTries is for how many seconds a failing end is retried. After that the doctor
	// reports it to the operator.
	endTries = 24 * 3600
	// concludeEvery is the interval between attempts to store the result of an event.
	concludeEvery = time.Second
)

// actions maps events to their actions in the audit trail.
var actions = map[reservation.EventType]reservation.Action{
	reservation.StartEvent:     reservation.ActionStart,
	reservation.BeforeEndEvent: reservation.ActionWarnOfEnd,
	reservation.EndEvent:       reservation.ActionEnd,
}

// begun returns r after a replica has begun its event i.
func begun(r reservation.Reservation, i int, replica string, now span.Instant) (reservation.Reservation, error) {
	status, err := lifecycle.Begin(r.Status, r.Events[i].Type)
	if err != nil {
		return r, err
	}
	e := r.Events[i]
	e.State, e.Holder = reservation.EventRunning, replica
	return withEvent(r, i, e, status, now), nil
}

// finished returns r after its event i, which has begun, is done.
func finished(r reservation.Reservation, i int, now span.Instant) (reservation.Reservation, error) {
	status, err := lifecycle.Finish(r.Status, r.Events[i].Type)
	if err != nil {
		return r, err
	}
	e := r.Events[i]
	e.State, e.Done, e.Holder, e.Until, e.Detail = reservation.EventDone, now, "", 0, ""
	if late := now - e.Time; late > 0 {
		e.Detail = fmt.Sprintf("%v after its time", time.Duration(late)*time.Second)
	}
	return withEvent(r, i, e, status, now), nil
}

// carried returns r after its event i if the event requires no work in the cloud.
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

// postponed returns r with its failed event i due again, at last at the latest.
func postponed(r reservation.Reservation, i int, why error, last, now span.Instant) reservation.Reservation {
	e := r.Events[i]
	wait := int64(soonest)
	if e.Until != 0 {
		wait = min(max(int64(now-e.Time), soonest), latest)
	}
	e.State, e.Holder, e.Detail = reservation.EventDue, "", fault.Of(why).Message
	e.Until = min(now.Add(wait), last)
	return withEvent(r, i, e, r.Status, now)
}

// lastTry returns when a failing event is given up. An end may be long overdue at its first
// try, so its time counts from this replica's first retry, and starts over after a restart.
func (e *entry) lastTry(event reservation.Event) span.Instant {
	switch {
	case event.Type != reservation.EndEvent:
		return e.r.Span.End
	case e.endRetried == 0:
		return span.Forever
	}
	return e.endRetried.Add(endTries)
}

// noteRetry records the first retry of a failed end.
func (e *entry) noteRetry(event reservation.Event, now span.Instant) {
	if event.Type == reservation.EndEvent && event.Until != 0 && e.endRetried == 0 {
		e.endRetried = now
	}
}

func (e *entry) hopeless(event reservation.Event, now span.Instant) bool {
	return event.Until != 0 && now >= e.lastTry(event)
}

// givenUp returns r after a hopeless event was given up, and the index of the new event in its log.
func givenUp(r reservation.Reservation, e reservation.Event, now span.Instant) (reservation.Reservation, int, error) {
	status, err := lifecycle.Next(r.Status, lifecycle.Fail)
	if err != nil {
		return r, 0, err
	}
	detail := fmt.Sprintf("Almanac stopped retrying its %s: %s", e.Type, e.Detail)
	r = planning.Closed(r, status, planning.Happened(reservation.FailedEvent, now, detail), now)
	return r, len(r.Events) - 1, nil
}

func withEvent(r reservation.Reservation, i int, e reservation.Event, status reservation.Status, now span.Instant) reservation.Reservation {
	r.Status, r.Updated, r.Version = status, now, r.Version+1
	r.Events = slices.Clone(r.Events)
	r.Events[i] = e
	return r
}

// act carries out the event i of r in the cloud and stores the result.
func (d *Service) act(ctx context.Context, r reservation.Reservation, i int) {
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
func (d *Service) conclude(ctx context.Context, id string, ran reservation.Event, why error) (done []Happening, err error) {
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
func (d *Service) conclusion(e *entry, ran reservation.Event, why error) (*attempt, int, error) {
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
	a.cause.Action = actions[ran.Type]
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
func (d *Service) TakeOver(ctx context.Context, gone func(replica string) bool) error {
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
func (d *Service) Wait() { d.working.running.Wait() }

// work records which events are being carried out, and the results since drain was last called.
type work struct {
	running sync.WaitGroup

	mu     sync.Mutex
	acting map[string]int // number of events in progress in the cloud, by reservation
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

func (w *work) drain() (done []Happening, failed map[string]error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	done, failed = w.done, w.failed
	w.done, w.failed = nil, nil
	return done, failed
}
