// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// fenceGrace is how many seconds after the fence is complete an instance may start to run on one of
// its hosts without a finding.
const fenceGrace = 120

// afterEvent is for how many seconds after an event of a reservation its changes in the cloud do
// not count as findings.
const afterEvent = 120

// diagnosis is a finding with its fix.
type diagnosis struct {
	Finding
	steps  []fence.Step
	cancel []reservation.Reservation
	order  *instanceOrder
	notice *inventory.Instance // the instance whose notice is withdrawn
	claims string              // id of the instance whose allocations are released
}

// judge returns the findings, sorted by kind, then subject.
func judge(f facts) []diagnosis {
	j := judgement{facts: f, found: map[Finding]*diagnosis{}}
	j.promises()
	if f.unpinned != "" {
		j.find(Unpinned, "scheduler", "set [scheduler] mode = interpose or replace, or leave it where the plugin is installed", false, "%s", f.unpinned)
	}
	for _, option := range slices.Sorted(maps.Keys(f.idle)) {
		j.find(Idle, option, f.idle[option].Remedy, false, "%s", f.idle[option].Reason)
	}
	j.instances()
	if f.cloud {
		desired := fence.Desired(withoutFreedClaims(f.live, f.layout), f.hosts, f.now, f.rules)
		j.shared()
		for _, step := range withoutHeldRooms(fence.Diff(f.layout, desired), f.hosts) {
			if !j.inProgress(step) {
				j.step(step, desired)
			}
		}
		j.awaited()
		j.onHosts(desired)
	}
	var list []diagnosis
	for _, t := range j.found {
		list = append(list, *t)
	}
	slices.SortFunc(list, func(a, b diagnosis) int {
		return cmp.Or(cmp.Compare(slices.Index(FindingKinds, a.Kind), slices.Index(FindingKinds, b.Kind)), cmp.Compare(a.Subject, b.Subject))
	})
	return list
}

// inProgress reports whether the step belongs to an event that is being carried out, or was until a
// moment ago. A step without a reservation belongs to the fence.
func (j *judgement) inProgress(s fence.Step) bool {
	for i := range j.live {
		r := &j.live[i]
		ours := r.ID == s.Reservation
		switch {
		case ours && underWay(s, r.Status), ours && r.Status == reservation.Starting && j.fresh(r):
			return true
		case r.Status == reservation.Active && j.fresh(r) && (ours && s.Mirrors() || s.Host != "" && s.Aggregate.Name == j.rules.Mirror && touches(r, s)):
			return true
		case s.Reservation == "" && (r.Status == reservation.Ending || r.Status == reservation.Starting && j.fresh(r)) && touches(r, s):
			return true
		}
	}
	for _, r := range j.over {
		if j.fresh(&r) && (r.ID == s.Reservation || s.Reservation == "" && touches(&r, s)) {
			return true
		}
	}
	return false
}

// fresh reports whether the last event of the reservation was within afterEvent.
func (j *judgement) fresh(r *reservation.Reservation) bool { return j.now < r.Updated.Add(afterEvent) }

// touches reports whether the step, which names no reservation, may be for this one: it
// concerns one of its hosts, or no host.
func touches(r *reservation.Reservation, s fence.Step) bool {
	return s.Host == "" || slices.ContainsFunc(r.Claims, func(c reservation.Claim) bool { return c.Host == s.Host })
}

type judgement struct {
	facts
	found map[Finding]*diagnosis // by Kind and Subject only
	twice map[string]bool        // hosts in the aggregates of two reservations
}

// find returns the finding of that kind with the subject, and adds it if it is new. Otherwise
// it adds the message to the existing one.
func (j *judgement) find(kind FindingKind, subject, remedy string, fixable bool, message string, args ...any) *diagnosis {
	key := Finding{Kind: kind, Subject: subject}
	message = fmt.Sprintf(message, args...)
	t := j.found[key]
	if t == nil {
		t = &diagnosis{Finding: Finding{Kind: kind, Subject: subject, Message: message, Remedy: remedy, Fixable: fixable}}
		j.found[key] = t
	} else if !strings.Contains(t.Message, message) {
		t.Message += "; " + message
	}
	return t
}

// instances adds what evictions and failed builds have left behind.
func (j *judgement) instances() {
	for i := range j.noticed {
		g := &j.noticed[i]
		j.find(StaleNotice, g.ID, "the fix deletes the notice from its metadata; Almanac does so by itself within minutes", true,
			"instance %s of project %s has the notice of an eviction that is over, and is on host %s", g.ID, g.ProjectID, g.Host).notice = g
	}
	for _, g := range j.unplaced {
		j.find(Unplaced, g.ID, "the fix releases its allocations; its owner deletes it and creates another one", true,
			"instance %s of project %s is in ERROR on no host, and has allocations in Placement that nobody can use", g.ID, g.ProjectID).claims = g.ID
	}
}

// promises examines the live reservations; it does not need the cloud.
func (j *judgement) promises() {
	for _, r := range j.live {
		for _, c := range r.Claims {
			if _, there := j.hosts.Index(c.Host); !there && c.Span.End > j.now {
				j.find(VanishedHost, c.Host, "healing replaces the host in its reservations when the inventory is trusted; if the host has a new name, cancel the reservations and book again",
					false, "host %s is reserved by reservation %s until %v and is not in the inventory", c.Host, r.ID, c.Span.End)
			}
		}
		if j.gone[r.ProjectID] {
			j.vanishedOwner(&r)
		}
	}
}

// vanishedOwner adds a project that does not exist in Keystone. If none of the projects exists
// there, it is more likely that Keystone is wrong, and there is no finding.
func (j *judgement) vanishedOwner(r *reservation.Reservation) {
	const message = "project %s no longer exists and has reservation %s (%s)"
	if all := len(j.gone); all > 1 && !slices.Contains(slices.Collect(maps.Values(j.gone)), false) {
		j.find(VanishedOwner, r.ProjectID, "check whether Keystone has lost its projects; if they are deleted, cancel their reservations by hand",
			false, message+"; Keystone knows none of the %d projects with reservations, so Almanac does not rely on its answer", r.ProjectID, r.ID, r.Status, all)
		return
	}
	t := j.find(VanishedOwner, r.ProjectID, "the fix cancels the reservations; what is left of them in OpenStack is removed afterwards",
		true, message, r.ProjectID, r.ID, r.Status)
	t.cancel = append(t.cancel, *r)
}

// shared finds hosts in the aggregates of two reservations, if at least one of the two is of kind
// host: the trait of that one keeps the flavors of the other off.
func (j *judgement) shared() {
	j.twice = map[string]bool{}
	members := map[string][]inventory.Aggregate{}
	for _, name := range slices.Sorted(maps.Keys(j.layout.Aggregates)) {
		if a := j.layout.Aggregates[name]; name != fence.Aggregate && !fence.IsMirror(a) {
			for _, host := range a.Hosts {
				members[host] = append(members[host], a)
			}
		}
	}
	for host, of := range members {
		if len(of) < 2 || !slices.ContainsFunc(of, exclusive) {
			continue
		}
		var names []string
		for _, a := range of {
			names = append(names, a.Name)
		}
		j.twice[host] = true
		j.find(TwoOwners, host, "the fix removes the host from the aggregates in which it does not belong", true,
			"host %s is in %s: no flavor of either can use it", host, strings.Join(names, " and "))
	}
}

// awaited marks the hosts that an event removes from the aggregate of another reservation: the fix leaves
// that to the event.
func (j *judgement) awaited() {
	for host := range j.twice {
		if t := j.found[Finding{Kind: TwoOwners, Subject: host}]; len(t.steps) == 0 {
			t.Fixable, t.Remedy = false, "an event of one of the reservations is being carried out; examine again when it is over"
		}
	}
}

// exclusive reports whether the aggregate belongs to a reservation of kind host.
func exclusive(a inventory.Aggregate) bool {
	for key, value := range a.Metadata {
		if strings.HasPrefix(key, "trait:"+fence.ReservationPrefix) && value == "required" {
			return true
		}
	}
	return false
}

// step adds the finding for a step that leads from the layout to the desired one.
func (j *judgement) step(s fence.Step, desired fence.Layout) {
	const mend = "the fix repairs it; Almanac does so by itself at its next check"
	var t *diagnosis
	switch s.Action {
	case fence.CreateAggregate, fence.AddHost:
		t = j.find(Missing, s.Aggregate.Name, mend, true, "%s", s.Reason)
	case fence.AddTraits, fence.AddRooms:
		t = j.find(Missing, s.Host, mend, true, "%s", s.Reason)
	case fence.CreateFlavor:
		t = j.find(Missing, s.Flavor.Name, mend, true, "%s", s.Reason)
	case fence.MarkAggregate, fence.UnmarkAggregate:
		t = j.find(Altered, s.Aggregate.Name, mend, true, "%s", s.Reason)
	case fence.MarkFlavor:
		t = j.find(Altered, s.Flavor.Name, mend, true, "%s", s.Reason)
	case fence.RemoveHost:
		if _, wanted := desired.Aggregates[s.Aggregate.Name]; j.twice[s.Host] {
			t = j.find(TwoOwners, s.Host, "", true, "%s", s.Reason)
		} else if wanted {
			t = j.find(Misplaced, s.Host, mend, true, "%s", s.Reason)
		}
		if _, wanted := desired.Aggregates[s.Aggregate.Name]; !wanted {
			j.orphan(OrphanGroup, s.Aggregate.Name, s)
		}
	case fence.DeleteAggregate:
		j.orphan(OrphanGroup, s.Aggregate.Name, s)
	case fence.DeleteFlavor:
		j.orphan(OrphanFlavor, s.Flavor.Name, s)
	case fence.DeleteTrait:
		j.orphan(OrphanTrait, s.Name, s)
	case fence.DeleteClass:
		j.orphan(OrphanResource, s.Name, s)
	case fence.RemoveTraits:
		j.surplusTraits(s, desired)
	case fence.RemoveRooms:
		for class := range s.Rooms { // one
			if slices.Contains(desired.ClassNames, class) {
				t = j.find(Misplaced, s.Host, mend, true, "%s", s.Reason)
			} else {
				j.orphan(OrphanResource, class, s)
			}
		}
	}
	if t != nil {
		t.steps = append(t.steps, s)
	}
}

// surplusTraits adds a finding for each trait: a trait that no host should have is an orphan.
func (j *judgement) surplusTraits(s fence.Step, desired fence.Layout) {
	for _, trait := range s.Traits {
		one := s
		one.Traits = []string{trait}
		if !slices.Contains(desired.TraitNames, trait) {
			j.orphan(OrphanTrait, trait, one)
			continue
		}
		t := j.find(Misplaced, s.Host, "the fix removes it; Almanac does so by itself at its next check", true, "host %s should not have trait %s", s.Host, trait)
		t.steps = append(t.steps, one)
	}
}

// orphan adds a resource that no reservation needs, and names its last owner.
func (j *judgement) orphan(kind FindingKind, subject string, s fence.Step) {
	remedy := "the fix deletes it; Almanac does so by itself at its next check"
	whose := "nothing needs it"
	switch r, over := j.over[s.Reservation]; {
	case over:
		whose = fmt.Sprintf("reservation %s is %s", r.ID, r.Status)
	case s.Reservation == "":
	case slices.ContainsFunc(j.live, func(r reservation.Reservation) bool { return r.ID == s.Reservation }):
		whose = fmt.Sprintf("reservation %s does not need it now", s.Reservation)
	default:
		whose = fmt.Sprintf("Almanac has no record of reservation %s", s.Reservation)
		remedy = "the fix deletes it; run it only if no other Almanac works on this cloud"
	}
	t := j.find(kind, subject, remedy, true, "%s is left in OpenStack: %s", subject, whose)
	t.steps = append(t.steps, s)
}

// onHosts examines the instances on the hosts.
func (j *judgement) onHosts(desired fence.Layout) {
	for _, h := range j.hosts.Hosts() {
		for i := range h.Instances {
			g := &h.Instances[i]
			if r, over := j.over[g.ReservationID()]; over && !j.fresh(&r) {
				j.leftover(r, g)
			}
			j.stranger(h.Name, g)
			j.passedFence(h.Name, g, desired)
		}
	}
}

// leftover adds an instance that the end of its reservation should have removed from its host.
func (j *judgement) leftover(r reservation.Reservation, g *inventory.Instance) {
	_, orders := endOrders([]inventory.Instance{*g}, r.OnEnd, false)
	if len(orders) == 0 {
		return
	}
	t := j.find(Leftover, g.ID, fmt.Sprintf("the fix orders Nova to %s it, as on_end requires", orders[0].order), true,
		"instance %s of project %s is on host %s (%s), and its reservation %s, with on_end %s, is %s", g.ID, g.ProjectID, g.Host, g.Status, r.ID, r.OnEnd, r.Status)
	t.order = &orders[0]
}

// stranger adds an instance on a host that is now held by a reservation to which it does not
// belong.
func (j *judgement) stranger(host string, g *inventory.Instance) {
	if j.resting[g.ID] {
		return
	}
	for i := range j.live {
		r := &j.live[i]
		if r.Status == reservation.Pending || !holds(r, host, j.now) || len(foreignInstances(r, host, []inventory.Instance{*g}, j.live, j.now)) == 0 {
			continue
		}
		if j.fill && yields(g) && r.Status == reservation.Active && !r.Maintenance {
			continue
		}
		if slices.ContainsFunc(j.live, func(o reservation.Reservation) bool { return o.ID == g.ReservationID() && holds(&o, host, j.now) }) {
			continue // of the earlier reservation, which is ending
		}
		j.find(Stranger, g.ID, fmt.Sprintf("ask its owner, then migrate or delete it: 'openstack server migrate --live-migration %s'", g.ID), false,
			"instance %s of project %s is on host %s, which is reserved by reservation %s of project %s until %v",
			g.ID, g.ProjectID, host, r.ID, r.ProjectID, r.Span.End)
	}
}

// passedFence adds an instance that started to run on a fenced host after the fence was complete.
// This is how a scheduler that ignores the fence becomes visible: Nova's REST API does not show the
// scheduler's settings. An instance for which an admin forced the host looks the same.
func (j *judgement) passedFence(host string, g *inventory.Instance, desired fence.Layout) {
	isUp := slices.Contains(desired.Aggregates[fence.Aggregate].Hosts, host) && slices.Contains(j.layout.Aggregates[fence.Aggregate].Hosts, host) &&
		slices.Contains(j.layout.Traits[host], fence.Reserved)
	mayPass := g.ReservationID() != "" || g.Preemptible || g.Flavor.ExtraSpecs["trait:"+fence.Reserved] == "required"
	if !isUp || mayPass {
		return
	}
	var since []span.Instant // when the fence was complete, for each claim
	for i := range j.live {
		r := &j.live[i]
		for _, c := range r.Claims {
			if c.Host == host && c.Span.End > j.now && (r.Status != reservation.Pending || j.now.Add(j.rules.Ahead) >= c.Span.Start) {
				since = append(since, max(r.Updated, c.Span.Start.Add(-min(j.rules.Ahead, int64(c.Span.Start)))))
			}
		}
	}
	if len(since) == 0 || g.Launched < slices.Min(since).Add(fenceGrace) {
		return
	}
	j.find(FenceIgnored, "nova-scheduler", "set enable_isolated_aggregate_filtering = true in [scheduler] of every nova-scheduler's nova.conf and restart them; if an admin forced the host, this concerns that instance only",
		false, "instance %s was placed on host %s at %v, although the host was in the fence", g.ID, host, g.Launched)
}
