// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// state is the content of memory at one moment. It is immutable: decisions and answers use it
// while memory changes.
type state struct {
	revision uint64
	hosts    *planning.HostIndex
	calendar *calendar.Calendar // a snapshot
	live     liveIndex
	marks    uint64 // see Fingerprint
	// becoming are the changed reservations of attempts that are being stored, if they have an
	// image and different claims.
	becoming []*reservation.Reservation
	pruned   span.Instant
	kept     *keptDemands
}

// state returns the newest state. It does not wait for locks if nothing has changed since the
// previous call.
func (d *Service) state() *state {
	if s := d.newest.Load(); s != nil && s.revision == d.mu.revision.Load() {
		return s
	}
	d.mu.lockToLook()
	defer d.mu.Unlock()
	return d.stateNow()
}

// stateNow returns the newest state; mu is held for reading.
func (d *Service) stateNow() *state {
	now := d.mu.revision.Load()
	if s := d.newest.Load(); s != nil && s.revision == now {
		return s
	}
	s := &state{
		revision: now, hosts: d.hosts, calendar: d.calendar.Snapshot(), live: d.liveIndex.snapshot(), marks: d.marks, pruned: d.pruned, kept: &d.kept,
	}
	for a := range d.attempts {
		if a.next.Image != "" && a.before.ID != "" && a.next.Status.Live() && !holdsSame(&a.before, &a.next) {
			s.becoming = append(s.becoming, &a.next)
		}
	}
	d.newest.Store(s)
	return s
}

// view is what a decision depends on, and the state from which it comes.
type view struct {
	planning.View
	state      *state
	held       planning.Held // of the project, with the reservation that is changed
	configured int           // how often the rules were replaced
}

// view returns what a decision for project depends on.
func (d *Service) view(by Caller, project string) view {
	d.mu.lockToLook()
	defer d.mu.Unlock()
	return d.viewNow(by, project)
}

// viewNow returns what a decision for project depends on; mu is held for reading.
func (d *Service) viewNow(by Caller, project string) view {
	s := d.stateNow()
	v := planning.View{
		Now: d.options.Now(), Calendar: s.calendar, Held: d.held[project],
		Limits: d.options.Limits, Defaults: d.options.Defaults, LeadTime: d.options.LeadTime, Migrates: d.options.Migrates,
		SeesHidden: by.SeesHidden, Hosts: s.hosts, Pruned: s.pruned,
	}
	if d.looksAtImages() {
		v.ImagesWithout = s.imagesWithout(d.options.Images())
	}
	if v.ImagesWithout != nil {
		v.Images = v.ImagesWithout("")
	}
	return view{v, s, d.held[project], d.configured}
}

// outdated reports whether a decision on v must be made again whatever it claims. The caller holds
// mu.
func (d *Service) outdated(v *view, project string) bool {
	limited := v.Limits.Hosts > 0 || v.Limits.HostSeconds > 0
	return v.state.hosts != d.hosts || v.configured != d.configured || limited && v.held != d.held[project]
}

// imagesWithout returns the function View.ImagesWithout; nil without facts.
func (s *state) imagesWithout(facts *staging.Facts) func(id string) *planning.Images {
	if facts == nil {
		return nil
	}
	return func(id string) *planning.Images {
		return &planning.Images{Facts: facts, Accepted: func(now span.Instant) *staging.Accepted { return s.accepted(facts, now, id) }}
	}
}
