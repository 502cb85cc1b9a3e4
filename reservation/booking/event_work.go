// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
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

// Happening is an event that was carried out, and its reservation afterwards.
type Happening struct {
	Reservation reservation.Reservation
	Event       reservation.Event
}

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
