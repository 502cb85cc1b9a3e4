// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"slices"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Draft is a Plan that is not explained yet: until Explained, its Decision lacks the hosts, and how
// they compare. Repair makes it a plan for newer states. It is for one goroutine at a time.
type Draft struct {
	Plan
	walk *walk // nil if there is nothing to explain
}

// mostChanged is the largest number of changed hosts with which a draft is repaired. With many more,
// a new one takes less time.
const mostChanged = 256

// Explained completes the Plan and returns it. From then on the Draft cannot be repaired.
func (d *Draft) Explained() Plan {
	if d.walk == nil {
		return d.Plan
	}
	d.walk.explain(&d.Decision)
	if len(d.Picks) > 0 {
		d.Decision.Placements = d.walk.pipeline.placements(d.walk.states, d.Picks)
	}
	d.Drop()
	return d.Plan
}

// Drop lets another plan use the memory of the Draft, which may be nil. It then stays unexplained.
func (d *Draft) Drop() {
	if d != nil && d.walk != nil {
		d.walk.end()
		d.walk = nil
	}
}

// refused explains why there is no plan.
func (d *Draft) refused(reason string) *Draft {
	d.Decision.Reason = reason
	d.Explained()
	return d
}

// Repair makes the Draft the one that Pipeline.Draft would return for the states s now, with the same
// request and new draws. It judges only the hosts that have changed. It returns false, and drops the Draft,
// if a new one is needed: because it would have no hosts, the hosts were read again, reservations have
// changed, the request is for several instances, many hosts have changed, or the time.
func (d *Draft) Repair(s *inventory.States, now span.Instant) bool {
	if d.repair(s, now) {
		return true
	}
	d.Drop()
	return false
}

// repair brings a draft for one instance up to date with s, in which few hosts differ, and reports
// whether it could. If not, the draft must be made again.
func (d *Draft) repair(s *inventory.States, now span.Instant) bool {
	w := d.walk
	if w == nil || w.instances != 1 || now != w.now || !s.SameHosts(w.states) || s.Nova() != w.states.Nova() {
		return false
	}
	changed, few := changedHosts(s, w.states)
	if !few {
		return false
	}
	w.states, w.group = s, w.request.Group
	before := w.among.Clone()
	if !w.filterAgain(changed) {
		return false
	}
	w.findRoom()
	w.among = w.candidates()
	for i, word := range w.among {
		changed[i] |= word ^ before[i]
	}
	if changed.Count() > mostChanged || !w.ranking.Repair(s, slices.Collect(changed.All()), w.among) {
		return false
	}
	w.sort()
	w.noteBest()
	pick, possible := w.pick(d.Picks[0].Take.Instance)
	if !possible {
		return false
	}
	d.Picks = []Pick{pick}
	w.chooseAlternates(d.Picks)
	return true
}

// changedHosts returns the hosts that may differ between states of the same hosts; few is false if
// they are more than mostChanged.
func changedHosts(s, before *inventory.States) (changed hostset.Set, few bool) {
	changed = hostset.New(s.Len())
	count := 0
	for host := range s.Changed(before) {
		if count++; count > mostChanged {
			return nil, false
		}
		changed.Add(host)
	}
	return changed, true
}

// filterAgain corrects the steps of the filters, and the hosts that they leave, after these hosts have
// changed. It returns false if that is not enough: a filter depends on something else that has changed,
// or it leaves none.
func (w *walk) filterAgain(changed hostset.Set) bool {
	left, was := changed.Clone(), changed.Clone() // after each step: those that pass it now, and passed it before
	next := hostset.New(w.states.Len())
	for n := range w.steps {
		st := &w.steps[n]
		test := st.filter.For(w.states, w.request, w.now)
		if !filters.SameBasis(test, st.test) {
			return false
		}
		st.test = test
		if test != nil {
			was.Subtract(st.refused)
			copy(next, left)
			test.Keep(next)
			for i, word := range left {
				left[i] &= next[i]
				st.refused[i] = st.refused[i]&^changed[i] | word&^left[i]
			}
		}
		if st.left += left.Count() - was.Count(); st.left == 0 {
			return false
		}
	}
	w.hosts.Subtract(changed)
	w.hosts.Unite(left)
	return true
}
