package booking

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync/atomic"

	"github.com/almanac-cloud/almanac/reservation"
)

// polls lets one read of the log serve all who came before it began.
type polls struct {
	turn  chan struct{} // has an element while somebody reads
	begun atomic.Int64
	moved bool // what the last one has found
	err   error
}

// begin waits for the turn to read, and gives what ends it.
func (p *polls) begin(ctx context.Context) (end func(), err error) {
	select {
	case p.turn <- struct{}{}:
		return func() { <-p.turn }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for others that read the records: %w", ctx.Err())
	}
}

// Follow takes over what other replicas have stored.
func (d *Desk) Follow(ctx context.Context) error {
	_, err := d.poll(ctx, Recall{})
	return err
}

// Resync compares everything with the records, for what Follow may have missed.
func (d *Desk) Resync(ctx context.Context) error {
	end, err := d.polls.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return d.resync(ctx)
}

func (d *Desk) resync(ctx context.Context) error {
	d.mu.RLock()
	ids := slices.Collect(maps.Keys(d.live))
	d.mu.RUnlock()
	// What is over goes first, so that it does not stand in the way of the new.
	for _, q := range []Recall{{IDs: ids, Since: math.MaxInt64}, {All: true}} {
		if _, err := d.recall(ctx, q); err != nil {
			return fmt.Errorf("compare the reservations with the records: %w", err)
		}
	}
	return nil
}

// poll reads what the log and the question name and takes it over. It says whether
// that changed anything.
func (d *Desk) poll(ctx context.Context, q Recall) (moved bool, err error) {
	before := d.polls.begun.Load()
	end, err := d.polls.begin(ctx)
	if err != nil {
		return false, err
	}
	defer end()
	if logOnly := !q.All && q.IDs == nil && q.Hosts == nil && q.Project == ""; logOnly && d.polls.begun.Load() > before {
		return d.polls.moved, d.polls.err
	}
	d.polls.begun.Add(1)
	d.polls.moved, d.polls.err = d.recall(ctx, q)
	if errors.Is(d.polls.err, errContradiction) {
		// Something that is over still stands in the way: the log has not told yet.
		d.polls.moved, d.polls.err = true, d.resync(ctx)
	}
	return d.polls.moved, d.polls.err
}

// errContradiction says that what was read does not fit beside what memory has.
var errContradiction = errors.New("the records contradict what is known")

func (d *Desk) recall(ctx context.Context, q Recall) (moved bool, err error) {
	d.mu.RLock()
	q.Since, q.Known = max(q.Since, d.tail.low), d.version
	doubtful := slices.Sorted(maps.Keys(d.doubtful))
	d.mu.RUnlock()
	q.IDs = append(slices.Clone(q.IDs), doubtful...)
	got, err := d.options.Records.Recall(ctx, q)
	if err != nil {
		return false, fmt.Errorf("read what has changed: %w", err)
	}
	for {
		d.mu.Lock()
		moved, blocked, err := d.adopt(got)
		settled := d.settled
		if !blocked && err == nil {
			if !q.All && q.Since == d.tail.low {
				d.tail.advance(got.Log, d.options.Now())
			}
			for _, id := range doubtful {
				delete(d.doubtful, id)
			}
		}
		d.mu.Unlock()
		if !blocked {
			return moved, err
		}
		select {
		case <-settled:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// version is that of a reservation in memory, or in which it left.
func (d *Desk) version(id string) int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if e, ok := d.live[id]; ok {
		return e.r.Version
	}
	return d.left.version(id)
}

// adopt takes over what the records hold, all or nothing; mu is held. It is blocked
// while something in flight stands in the way: that was decided on what is no longer
// so, and will be refused.
func (d *Desk) adopt(got Recalled) (moved, blocked bool, err error) {
	var news []reservation.Reservation
	for _, r := range got.Reservations {
		e, live := d.live[r.ID]
		switch {
		case live && e.r.Version >= r.Version || !live && (!r.Status.Live() || d.left.version(r.ID) >= r.Version):
			continue
		case live && e.busy:
			return false, true, nil
		}
		news = append(news, r)
		d.roster.admit(r.HostNames(), d.calendar)
	}
	if err := d.exchange(news); err != nil {
		return false, len(d.inFlight) > 0, err
	}
	for _, r := range news {
		d.settleIn(r)
	}
	if moved = d.learn(got.Hosts) || len(news) > 0; moved {
		d.wake()
	}
	return moved, false, nil
}

// exchange puts the claims of news in the calendar in place of those that memory
// has of the same reservations. After an error the calendar is as it was.
func (d *Desk) exchange(news []reservation.Reservation) error {
	for _, r := range news {
		if e, ok := d.live[r.ID]; ok {
			d.release(d.calendarClaims(&e.r, e.r.Claims))
		}
	}
	for i, r := range news {
		if !r.Status.Live() {
			continue
		}
		if err := d.calendar.Restore(d.calendarClaims(&r, r.Claims)...); err != nil {
			d.restoreBefore(news, i)
			return fmt.Errorf("take over reservation %s of project %s: %w: %w", r.ID, r.ProjectID, errContradiction, err)
		}
	}
	return nil
}

// restoreBefore takes back an exchange of which entered were entered.
func (d *Desk) restoreBefore(news []reservation.Reservation, entered int) {
	for _, r := range news[:entered] {
		if r.Status.Live() {
			d.release(d.calendarClaims(&r, r.Claims))
		}
	}
	for _, r := range news {
		if e, ok := d.live[r.ID]; ok {
			d.retake(&e.r)
		}
	}
}

// settleIn puts a reservation among the live ones, or out of them; its claims are
// exchanged.
func (d *Desk) settleIn(r reservation.Reservation) {
	e, live := d.live[r.ID]
	switch {
	case !live:
		d.keep(&entry{r: r})
	case r.Status.Live():
		d.replace(e, r)
	default:
		d.forget(e)
		d.left.bury(r.ID, r.Version)
	}
}
