package booking

import (
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// What a desk knows of what a project holds, and how its limit on hosts is kept by all
// desks together: each commit after which the project holds more at some instant raises the
// version of the project, and where there is a limit it names the version that it was
// decided on.

// excess is that so many hosts more are held throughout a span.
type excess struct {
	span  span.Span
	hosts int
}

// moreHosts returns where next holds more hosts at once than before.
func moreHosts(before, next reservation.Reservation) (list []excess) {
	if !next.Status.Live() || sameClaims(before.Claims, next.Claims) {
		return nil
	}
	difference := addClaims(addClaims(span.Count{}, next.Claims, 1), before.Claims, -1)
	for part, hosts := range difference.Steps(span.Span{Start: math.MinInt64, End: span.Forever}) {
		if hosts > 0 {
			list = append(list, excess{part, hosts})
		}
	}
	return list
}

// usageOf returns what becoming next adds to what the project of before holds.
func usageOf(before, next reservation.Reservation) (u Usage) {
	if before.ID != "" {
		u.Hosts, u.HostSeconds = -before.Quantity, -weight(&before)
	}
	if next.Status.Live() {
		u.Hosts, u.HostSeconds = u.Hosts+next.Quantity, u.HostSeconds+weight(&next)
	}
	return u
}

// setHeld notes what a project holds; mu is held.
func (d *Desk) setHeld(project string, held Held) {
	if held == (Held{}) {
		delete(d.held, project)
		return
	}
	d.held[project] = held
}

// countMore counts what an attempt holds beside what was held before, times times: while
// it is in flight, the project holds at each instant the larger of the two. mu is held.
func (d *Desk) countMore(a *attempt, times int) {
	held := d.held[a.next.ProjectID]
	for _, m := range a.more {
		held.Hosts = held.Hosts.Add(m.span, m.hosts*times)
	}
	d.setHeld(a.next.ProjectID, held)
}

// keepsLimit reports whether the project, with all that is in flight, keeps its limit
// wherever the attempt holds more than before; mu is held.
func (d *Desk) keepsLimit(a *attempt) bool {
	if !d.isLimited(a) {
		return true
	}
	held := d.held[a.next.ProjectID].Hosts
	return !slices.ContainsFunc(a.more, func(m excess) bool { return held.Most(m.span) > d.options.Limits.Hosts })
}

// isLimited reports whether the limit on hosts is held against the attempt; mu is held.
func (d *Desk) isLimited(a *attempt) bool { return a.usage.Raises && d.options.Limits.Hosts > 0 }

// claimingKeys returns, sorted, what is locked while the attempt is stored: the hosts that
// it claims and, where there is a limit, its project.
func (d *Desk) claimingKeys(a *attempt, hosts []string) []string {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if !d.isLimited(a) {
		return hosts
	}
	keys := append(slices.Clone(hosts), "project "+a.next.ProjectID) // no host has a space in its name
	slices.Sort(keys)
	return keys
}

// projectVersion is the version that memory knows of a project.
func (d *Desk) projectVersion(project string) int64 {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.projects[project]
}
