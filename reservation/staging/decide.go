// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"fmt"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Accepted is the demands that were accepted, with what decisions about further ones have in common.
// It does not change, so decisions may share it.
type Accepted struct {
	site    Site
	before  State
	with    func(Demand) State // before with the demand entered
	excused map[string]bool    // ids of transfers that had started or were hopeless in before
	nodes   func() map[string][]int32
	// line is nil if the site is not one channel without limits.
	line *line
	// parts and until are nil if the state does not follow from facts. until is the instant before
	// which the state is the same.
	parts *parts
	until func() span.Instant
}

func newAccepted(site Site, before State, with func(Demand) State) *Accepted {
	a := &Accepted{site: site, before: before, with: with, excused: map[string]bool{}}
	for i := range before.Transfers {
		if t := &before.Transfers[i]; t.Started || site.hopeless(before.At, t) {
			a.excused[t.ID] = true
		}
	}
	a.nodes = sync.OnceValue(a.byNode)
	return a
}

// byNode returns the indices of the transfers to each node.
func (a *Accepted) byNode() map[string][]int32 {
	nodes := map[string][]int32{}
	for i := range a.before.Transfers {
		node := a.before.Transfers[i].Node
		nodes[node] = append(nodes[node], int32(i))
	}
	return nodes
}

// Before returns the state without a further demand.
func (a *Accepted) Before() State { return a.before }

// Admission returns a new Admission.
func (a *Accepted) Admission() *Admission { return &Admission{Accepted: a} }

// Admission decides on further demands, each as if it were the only one in addition to those
// already accepted. It limits the total work for the earliest starts that refusals contain. Only one
// goroutine may use it.
type Admission struct {
	*Accepted
	late map[string]bool // ids of transfers that were late in before; nil until computed
	part *part           // of the last image; nil until needed
	work int             // transfers laid out so far to find earliest starts
}

// Admit returns the state including the demand; or Before and a *Refusal with the earliest start
// that it found.
func (a *Admission) Admit(d Demand) (State, error) {
	if refusal := a.Refuse(d); refusal != nil {
		return a.before, refusal
	}
	return a.With(d), nil
}

// With returns the state including the demand, whether it is possible or not.
func (a *Accepted) With(d Demand) State { return a.with(d) }

// Refuse returns the refusal of a demand, with the earliest start that it found; nil if the demand is
// accepted.
func (a *Admission) Refuse(d Demand) *Refusal {
	refusal := a.Explain(d)
	if refusal != nil {
		refusal.Earliest = a.earliest(d)
	}
	return refusal
}

// Explain is Refuse without the earliest start.
func (a *Admission) Explain(d Demand) *Refusal {
	if c, ok := a.change(d); ok {
		late, hopeless := a.line.hurt(&a.before, c)
		if hopeless {
			late, ok = a.line.hopelessIn(c)
		}
		switch {
		case ok && late == nil:
			return nil
		case ok:
			return a.site.lateRefusal(d, c.fresh, late)
		}
	}
	return a.judge(a.with(d), d)
}

// Allows reports whether Admit would accept the demand.
func (a *Admission) Allows(d Demand) bool {
	allowed, _ := a.allows(d)
	return allowed
}

// allows reports whether Admit would accept the demand, and how many transfers there would be.
func (a *Admission) allows(d Demand) (allowed bool, transfers int) {
	if c, ok := a.change(d); ok {
		late, hopeless := a.line.hurt(&a.before, c)
		return late == nil && !hopeless, len(a.before.Transfers) + len(c.fresh) - len(c.gone)
	}
	after := a.with(d)
	return a.judge(after, d) == nil, len(after.Transfers)
}

// judge returns a *Refusal that states why the demand is impossible, or nil. after is the state
// including the demand.
func (a *Admission) judge(after State, d Demand) *Refusal {
	site := a.site
	fresh := added(a.before, after)
	if site.Limit > 0 {
		if d.Image.Size > site.Limit && len(fresh) > 0 {
			return &Refusal{Reason: NoPool, Node: fresh[0].Node, Message: fmt.Sprintf(
				"the image %s has %d bytes, and a host keeps at most %d bytes of images", d.Image.ID, d.Image.Size, site.Limit)}
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
	return site.lateRefusal(d, fresh, late)
}

// lateRefusal returns the refusal because a transfer is late. fresh are those that the demand adds.
func (s Site) lateRefusal(d Demand, fresh []Transfer, late *Transfer) *Refusal {
	why := "other promised images would then be late"
	if late.Deadline == d.Span.Start && slices.ContainsFunc(fresh, func(t Transfer) bool { return t.ID == late.ID }) {
		if why = fmt.Sprintf("its transfer would end at %v", late.End); late.End == span.Forever {
			why = "no repository has it"
		}
	}
	return &Refusal{Reason: NoTransfer, Node: late.Node, Message: fmt.Sprintf(
		"the image %s cannot be on the hosts in time: it must be there by %s, but %s", d.Image.ID, s.by(d.Span.Start), why)}
}

// by describes, for a message, until when an image must be on the hosts for a start.
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

// added returns the transfers of after that are not in before, or have an earlier deadline there.
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

// hurt returns a transfer that is late in after; nil if none is. Transfers that run already or are
// hopeless do not count. fresh states whether the demand adds a transfer; if it does not, transfers
// that were late before do not count either.
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
