package staging

import (
	"errors"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Admission decides on demands beside those that are met already, each as if it were the
// only one. It knows what is the same for all decisions, and bounds what all refusals
// together take to find an earliest start. It is for one goroutine.
type Admission struct {
	site    Site
	before  State
	with    func(Demand) State // before with a demand
	excused map[string]bool    // what started or was hopeless in before
	late    map[string]bool    // what was late in before; nil is not known yet
	work    int                // transfers that were laid out to find earliest starts
}

func newAdmission(site Site, before State, with func(Demand) State) *Admission {
	a := &Admission{site: site, before: before, with: with, excused: map[string]bool{}}
	for i := range before.Transfers {
		if t := &before.Transfers[i]; t.Started || site.hopeless(before.At, t) {
			a.excused[t.ID] = true
		}
	}
	return a
}

// Before is the state without another demand.
func (a *Admission) Before() State { return a.before }

// Admit gives the state with a demand, or Before and a *Refusal, with the earliest start
// where it is found.
func (a *Admission) Admit(d Demand) (State, error) {
	after := a.with(d)
	if refusal, ok := errors.AsType[*Refusal](a.judge(after, d)); ok {
		refusal.Earliest = a.earliest(d)
		return a.before, refusal
	}
	return after, nil
}

// Allows says whether Admit would admit a demand.
func (a *Admission) Allows(d Demand) bool { return a.judge(a.with(d), d) == nil }

// judge says what is wrong with a state after a demand was entered: a *Refusal or nil.
func (a *Admission) judge(after State, d Demand) error {
	site := a.site
	fresh := added(a.before, after)
	if site.Limit > 0 {
		if d.Image.Size > site.Limit && len(fresh) > 0 {
			return &Refusal{Reason: NoPool, Node: fresh[0].Node, Message: fmt.Sprintf(
				"the image %s has %d bytes, and the pool of a host takes no more than %d", d.Image.ID, d.Image.Size, site.Limit)}
		}
		was, is := needed(a.before, d.Nodes), needed(after, d.Nodes)
		for _, node := range d.Nodes {
			if overfull(was[node], is[node], site.Limit) {
				return poolRefusal(site, d, node)
			}
		}
	}
	late := a.hurt(site, after, len(fresh) > 0)
	if late == nil {
		return nil
	}
	if site.Limit > 0 {
		unbound := site
		if unbound.Limit = 0; a.hurt(unbound, after, len(fresh) > 0) == nil {
			return poolRefusal(site, d, late.Node)
		}
	}
	why := "then other images that are promised would come too late"
	if late.Deadline == d.Span.Start && slices.ContainsFunc(fresh, func(t Transfer) bool { return t.ID == late.ID }) {
		if why = fmt.Sprintf("its transfer would end at %v", late.End); late.End == span.Forever {
			why = "no repository has it"
		}
	}
	return &Refusal{Reason: NoTransfer, Node: late.Node, Message: fmt.Sprintf(
		"the image %s cannot be on the hosts in time: it must be there by %s, and %s", d.Image.ID, site.by(d.Span.Start), why)}
}

// by says when an image must be there for a start.
func (s Site) by(start span.Instant) string {
	if s.Margin == 0 {
		return fmt.Sprintf("%v, the start", start)
	}
	return fmt.Sprintf("%v (%d s before the start)", start.Add(-s.Margin), s.Margin)
}

func poolRefusal(site Site, d Demand, node string) *Refusal {
	return &Refusal{Reason: NoPool, Node: node, Message: fmt.Sprintf(
		"there is no room for the image %s from %v to %v: a host keeps no more than %d bytes of images", d.Image.ID, d.Span.Start, d.Span.End, site.Limit)}
}

// added are the transfers of after that before does not have, or has for later.
func added(before, after State) (list []Transfer) {
	had := make(map[string]span.Instant, len(before.Transfers))
	for i := range before.Transfers {
		had[before.Transfers[i].ID] = before.Transfers[i].Deadline
	}
	for i := range after.Transfers {
		t := &after.Transfers[i]
		if deadline, ok := had[t.ID]; !ok || t.Deadline < deadline {
			list = append(list, *t)
		}
	}
	return list
}

// hurt gives a transfer that is late in after, nil where none is. What is hopeless or runs
// already is nobody's fault; without a fresh transfer, neither is what was late before.
func (a *Admission) hurt(site Site, after State, fresh bool) *Transfer {
	for _, t := range layOut(site, after.At, after).late {
		if !a.excused[t.ID] && (fresh || !a.wasLate(t.ID)) {
			return &t
		}
	}
	return nil
}

func (a *Admission) wasLate(id string) bool {
	if a.late == nil {
		a.late = map[string]bool{}
		for _, t := range layOut(a.site, a.before.At, a.before).late {
			a.late[t.ID] = true
		}
	}
	return a.late[id]
}
