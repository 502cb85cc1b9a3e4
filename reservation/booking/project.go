// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// This file has what a service knows of what a project holds, and how all services together keep the
// limit on its hosts: each commit after which the project holds more at some instant increases
// the version of the project, and if there is a limit, the commit names the version that it
// was decided on.

// excess is a number of additional hosts that a project holds throughout a span.
type excess struct {
	span  span.Span
	hosts int
}

// byProject returns the attempts of each project, new reservations apart from changes, in their order.
func byProject(attempts []*attempt) (groups [][]*attempt) {
	for _, a := range attempts {
		i := slices.IndexFunc(groups, func(g []*attempt) bool {
			return g[0].next.ProjectID == a.next.ProjectID && (g[0].before.ID == "") == (a.before.ID == "")
		})
		if i < 0 {
			i, groups = len(groups), append(groups, nil)
		}
		groups[i] = append(groups[i], a)
	}
	return groups
}

// moreHosts returns the spans in which the project holds more hosts after the attempts than before,
// with the difference.
func moreHosts(attempts []*attempt) (list []excess) {
	var difference span.Count
	for _, a := range attempts {
		if a.next.Status.Live() && holdsSame(&a.before, &a.next) {
			continue
		}
		difference = planning.AddClaims(difference, planning.CountedClaims(&a.before), -1)
		if a.next.Status.Live() { // otherwise another one may hold what it leaves
			difference = planning.AddClaims(difference, planning.CountedClaims(&a.next), 1)
		}
	}
	for part, hosts := range difference.Steps(span.Always) {
		if hosts > 0 {
			list = append(list, excess{part, hosts})
		}
	}
	return list
}

// usageOf returns how the usage of the project changes from before to next.
func usageOf(before, next reservation.Reservation) (u Usage) {
	if next.Maintenance {
		return Usage{}
	}
	if before.ID != "" {
		u.Hosts, u.HostSeconds = -before.Quantity, -planning.Weight(&before)
	}
	if before.Status == reservation.Waiting {
		u.Hosts = 0
	}
	if next.Status.Promised() {
		u.Hosts, u.HostSeconds = u.Hosts+next.Quantity, u.HostSeconds+planning.Weight(&next)
	}
	return u
}

// setHeld stores what a project holds; mu is held.
func (m *memory) setHeld(project string, held planning.Held) {
	if held == (planning.Held{}) {
		delete(m.held, project)
		return
	}
	m.held[project] = held
}

// countMore adds to the project, times times, what an attempt holds in addition to what was held
// before. While the attempt is being stored, the project holds at each instant the larger of the
// two. The caller holds mu.
func (m *memory) countMore(a *attempt, times int) {
	held := m.held[a.next.ProjectID]
	for _, more := range a.more {
		held.Hosts = held.Hosts.Add(more.span, more.hosts*times)
	}
	m.setHeld(a.next.ProjectID, held)
}

// keepsLimit reports whether the project, including all attempts that are being stored, keeps its
// limits on hosts at all instants at which the attempt holds more than before, and on holds. The caller holds mu.
func (w *writer) keepsLimit(a *attempt) bool {
	all := w.held[a.next.ProjectID]
	if a.before.Status == reservation.Waiting {
		all = all.Without(&a.before).With(&a.next)
	}
	if (a.before.ID == "" || a.before.Status == reservation.Waiting) && !w.options.Limits.KeepsHolds(all, &a.next) {
		return false
	}
	if !w.isLimited(a) {
		return true
	}
	held := w.held[a.next.ProjectID].Hosts
	return !slices.ContainsFunc(a.more, func(m excess) bool { return held.Most(m.span) > w.options.Limits.Hosts })
}

// isLimited reports whether the limit on hosts applies to the attempt. The caller holds mu.
func (w *writer) isLimited(a *attempt) bool { return a.usage.Raises && w.options.Limits.Hosts > 0 }

// claimingKeys returns, sorted, the keys that are locked while attempts are stored: the hosts on which they claim
// time and, if there is a limit, their projects.
func (w *writer) claimingKeys(attempts []*attempt, hosts []string) []string {
	w.mu.RLock()
	defer w.mu.RUnlock()
	keys := slices.Clone(hosts)
	for _, a := range attempts {
		if w.isLimited(a) {
			keys = append(keys, "project "+a.next.ProjectID) // no host has a space in its name
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// projectVersion returns the version of a project in memory.
func (m *memory) projectVersion(project string) int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.projects[project]
}
