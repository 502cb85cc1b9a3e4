// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"sync"

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
	places   func() map[string]int // see line.places
}

// state returns the newest state. It does not wait for locks if nothing has changed since the
// previous call.
func (m *memory) state() *state {
	if s := m.newest.Load(); s != nil && s.revision == m.mu.revision.Load() {
		return s
	}
	m.mu.lockToLook()
	defer m.mu.Unlock()
	return m.stateNow()
}

// stateNow returns the newest state; mu is held for reading.
func (m *memory) stateNow() *state {
	now := m.mu.revision.Load()
	if s := m.newest.Load(); s != nil && s.revision == now {
		return s
	}
	s := &state{
		revision: now, hosts: m.hosts, calendar: m.calendar.Snapshot(), live: m.liveIndex.snapshot(), marks: m.marks, pruned: m.pruned, kept: &m.kept,
	}
	s.places = sync.OnceValue(s.live.waiting.places)
	for a := range m.attempts {
		if a.next.Image != "" && a.before.ID != "" && a.next.Status.Live() && !holdsSame(&a.before, &a.next) {
			s.becoming = append(s.becoming, &a.next)
		}
	}
	m.newest.Store(s)
	return s
}

// view is what a decision depends on, and the state from which it comes.
type view struct {
	planning.View
	state      *state
	held       map[string]planning.Held // of the projects that the decision looked at, with the reservations that are changed
	configured int                      // how often the rules were replaced
}

// view returns what a decision for project depends on.
func (m *memory) view(by Caller, project string) view {
	m.mu.lockToLook()
	defer m.mu.Unlock()
	return m.viewNow(by, project)
}

// viewNow returns what a decision for project depends on; mu is held for reading.
func (m *memory) viewNow(by Caller, project string) view {
	s := m.stateNow()
	v := planning.View{
		Now: m.options.Now(), Calendar: s.calendar, Project: project, Held: m.held[project],
		Limits: m.options.Limits, Defaults: m.options.Defaults, LeadTime: m.options.LeadTime, Migrates: m.options.Migrates,
		SeesHidden: by.SeesHidden, Hosts: s.hosts, Pruned: s.pruned, Holds: m.options.AnswersHold, Apart: m.neighbors,
	}
	if m.options.Tariff != nil {
		v.Tariff = m.options.Tariff()
	}
	if m.looksAtImages() {
		v.ImagesWithout = s.imagesWithout(m.options.Images())
	}
	if v.ImagesWithout != nil {
		v.Images = v.ImagesWithout("")
	}
	return view{v, s, map[string]planning.Held{project: m.held[project]}, m.configured}
}

// outdated reports whether a decision on v must be made again whatever it claims. The caller holds
// mu.
func (m *memory) outdated(v *view, project string) bool {
	limited := v.Limits.Hosts > 0 || v.Limits.HostSeconds > 0
	return v.state.hosts != m.hosts || v.configured != m.configured || limited && v.held[project] != m.held[project]
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
