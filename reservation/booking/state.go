package booking

import (
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// state is what memory held at one moment. It never changes: decisions are made on it, and
// questions answered from it, while memory goes on.
type state struct {
	revision uint64
	roster   *roster
	calendar *calendar.Calendar // a snapshot
	live     shelves
	// becoming are the changes in flight of reservations with an image whose claims change.
	becoming []*reservation.Reservation
	pruned   span.Instant
}

// state returns the newest state, without waiting for anybody where nothing has changed
// since somebody last asked.
func (d *Desk) state() *state {
	if s := d.newest.Load(); s != nil && s.revision == d.mu.revision.Load() {
		return s
	}
	d.mu.lockToLook()
	defer d.mu.Unlock()
	return d.stateNow()
}

// stateNow is state; mu is held to look.
func (d *Desk) stateNow() *state {
	now := d.mu.revision.Load()
	if s := d.newest.Load(); s != nil && s.revision == now {
		return s
	}
	s := &state{
		revision: now, roster: d.roster, calendar: d.calendar.Snapshot(), live: d.shelves.snapshot(), pruned: d.pruned,
	}
	for a := range d.attempts {
		if a.next.Image != "" && a.before.ID != "" && a.next.Status.Live() && !sameClaims(a.before.Claims, a.next.Claims) {
			s.becoming = append(s.becoming, &a.next)
		}
	}
	d.newest.Store(s)
	return s
}

// view returns what a decision for project depends on.
func (d *Desk) view(by Caller, project string) View {
	d.mu.lockToLook()
	defer d.mu.Unlock()
	return d.viewNow(by, project)
}

// viewNow is view; mu is held to look.
func (d *Desk) viewNow(by Caller, project string) View {
	s := d.stateNow()
	v := View{
		Now: d.options.Now(), Calendar: s.calendar, Held: d.held[project],
		Limits: d.options.Limits, Defaults: d.options.Defaults, LeadTime: d.options.LeadTime, Migrates: d.options.Migrates,
		SeesHidden: by.SeesHidden, roster: s.roster, state: s, held: d.held[project], configured: d.configured,
	}
	if d.looksAtImages() {
		v.facts = d.options.Images()
	}
	v.Images = v.images("")
	return v
}

// outdated reports whether a decision on v must be made again, whatever it claims; mu is held.
func (d *Desk) outdated(v *View, project string) bool {
	limited := v.Limits.Hosts > 0 || v.Limits.HostSeconds > 0
	return v.roster != d.roster || v.configured != d.configured || limited && v.held != d.held[project]
}

// without returns the view as if r, which it holds, were not there.
func (v View) without(r *reservation.Reservation) View {
	v.Calendar = v.Calendar.Fork()
	for _, c := range v.roster.claims(r, r.Claims) {
		// What is over it may have forgotten.
		if err := v.Calendar.Remove(c); err != nil && c.Span.End > v.state.pruned {
			panic(fmt.Sprintf("booking: the calendar lost a claim: %v", err))
		}
	}
	v.Held = v.Held.without(r)
	v.Images = v.images(r.ID)
	return v
}

// images returns what decisions depend on beside the reservation with that id.
func (v *View) images(but string) *Images {
	if v.facts == nil {
		return nil
	}
	facts, s := v.facts, v.state
	return &Images{Facts: facts, Demands: func() []staging.Demand { return Demands(facts, s.withImages(but)) }}
}

// withImages returns the live reservations with an image, except the one with that id; of one
// that is being changed, both what it is and what it shall be.
func (s *state) withImages(but string) []reservation.Reservation {
	var live []reservation.Reservation
	for r := range s.live.imaged.until(span.Forever) {
		if r.ID != but {
			live = append(live, *r)
		}
	}
	for _, r := range s.becoming {
		if r.ID != but {
			live = append(live, *r)
		}
	}
	return live
}
