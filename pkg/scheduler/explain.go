// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/weighers"
)

// The limits of how much of a decision is stored: refused hosts, distributed over the filters that
// refused some, and the best hosts.
const (
	refusedKept = 100
	rankedKept  = 20
)

// notEnough is Nova's message for the tenant (nova/scheduler/manager.py
// _ensure_sufficient_hosts).
const notEnough = "There are not enough hosts available."

// listed returns the number of hosts that a decision lists; usually is this number without
// Pipeline.Whole.
func (w *walk) listed(usually int) int {
	if w.pipeline.Whole {
		return math.MaxInt
	}
	return usually
}

// noteBest keeps the best hosts for the explanation.
func (w *walk) noteBest() { w.best = slices.Clone(w.order[:min(w.listed(rankedKept), len(w.order))]) }

// explain adds to a decision, once, how many hosts each filter left, and the refused and the best hosts.
func (w *walk) explain(d *placing.Decision) {
	if w.steps == nil {
		return
	}
	d.Filters, d.Refused = counts(w.steps), refused(w.states, w.steps, w.listed(refusedKept))
	if w.best != nil {
		d.Ranked = ranked(w.states, &w.ranking, w.best)
	}
	w.steps = nil
}

// step is the result of one filter.
type step struct {
	filter  filters.Filter
	test    filters.Test // nil if every host passed
	refused hostset.Set  // nil if every host passed
	left    int
}

// undecided returns the decision about a request without its result.
func undecided(s *inventory.States, r *placing.Request, now span.Instant) placing.Decision {
	d := placing.Decision{RequestID: r.ID, ProjectID: r.ProjectID, Instances: r.Instances, At: now, Considered: s.Len()}
	d.Reservation = r.ExtraSpecs[inventory.ReservationMark]
	if hint, _ := r.HintedReservations(); len(hint) > 0 {
		d.Reservation = hint[0]
	}
	return d
}

// counts returns how many hosts each filter has left.
func counts(steps []step) []placing.FilterCount {
	left := make([]placing.FilterCount, len(steps))
	for i, s := range steps {
		left[i] = placing.FilterCount{Filter: s.filter.Name(), Left: s.left}
	}
	return left
}

// refused returns at most that many refused hosts, in the order of the filters that refused them,
// and of their names.
func refused(s *inventory.States, steps []step, most int) []placing.RefusedHost {
	refusing, hosts := 0, 0
	for _, st := range steps {
		if n := st.refused.Count(); n > 0 {
			refusing, hosts = refusing+1, hosts+n
		}
	}
	if hosts == 0 {
		return nil
	}
	list := make([]placing.RefusedHost, 0, min(hosts, most))
	for _, st := range steps {
		if st.refused.Count() == 0 {
			continue
		}
		room := (most - len(list)) / refusing
		refusing--
		for i := range st.refused.All() {
			if room == 0 {
				break
			}
			room--
			list = append(list, placing.RefusedHost{Host: s.Host(i).Name, Filter: st.filter.Name(), Reason: st.test.Why(i)})
		}
	}
	return list
}

// ranked returns hosts with their weights.
func ranked(s *inventory.States, ranking *weighers.Ranking, order []int) []placing.RankedHost {
	parts := ranking.Parts(order)
	list := make([]placing.RankedHost, len(order))
	for i, host := range order {
		list[i] = placing.RankedHost{Host: s.Host(host).Name, Weight: ranking.Weight(host), Parts: parts[i]}
	}
	return list
}

// placements returns the picks as a decision stores them, with the names of hosts, alternates and
// victims.
func (p *Pipeline) placements(s *inventory.States, picks []Pick) []placing.Placement {
	list := make([]placing.Placement, len(picks))
	for i, pick := range picks {
		host := s.Host(pick.Take.Host)
		list[i] = placing.Placement{Instance: pick.Take.Instance, Host: host.Name, Node: host.Node}
		for _, a := range pick.Alternates {
			list[i].Alternates = append(list[i].Alternates, s.Host(a).Name)
		}
		for n, v := range pick.Victims.Instances {
			list[i].Victims = append(list[i].Victims, placing.Victim{
				ID: v.ID, Name: v.Name, ProjectID: v.ProjectID, Cost: pick.Victims.Costs[n], Unit: p.Evictor.Cost.Unit(),
			})
		}
	}
	return list
}

// tenantReadable contains the filters whose reasons tenants may read: the owner of a reservation,
// about its hosts, and users who name or force a host, which Nova allows admins
// (nova/policies/servers.py create:forced_host, compute:servers:create:requested_destination). All
// other reasons are for operators: they may reveal hosts, their problems and other projects
// (nova/scheduler/manager.py _ensure_sufficient_hosts).
var tenantReadable = []string{filters.Reservation{}.Name(), filters.Capacity{}.Name()}

// namesHost reports whether the request names or forces a host.
func namesHost(r *placing.Request) bool {
	return r.Host != "" || r.Node != "" || len(r.ForceHosts)+len(r.ForceNodes) > 0
}

// reason returns, as a sentence for the tenant, why the nth of that many instances found no host.
// may is true if the tenant may read the reasons of the tenantReadable filters.
func reason(steps []step, n, instances int, may bool) string {
	var last step
	if len(steps) > 0 {
		last = steps[len(steps)-1]
	}
	refused := last.refused.Count()
	if refused == 0 {
		return notEnough + " None is known."
	}
	subject := ""
	if instances > 1 {
		subject = fmt.Sprintf(" for instance %d of %d", n+1, instances)
	}
	if may && slices.Contains(tenantReadable, last.filter.Name()) {
		if why, same := last.onlyReason(); same {
			return sentence(why, subject)
		}
	}
	return fmt.Sprintf("%s %s refused the last %d%s.", notEnough, last.filter.Name(), refused, subject)
}

// onlyReason returns the filter's reason if it is the same for all hosts; otherwise same is false.
func (s step) onlyReason() (why string, same bool) {
	for i := range s.refused.All() {
		switch next := s.test.Why(i); {
		case why == "":
			why = next
		case next != why:
			return "", false
		}
	}
	return why, why != ""
}

// sentence returns why as a full sentence.
func sentence(why, subject string) string {
	why = strings.TrimSuffix(why, ".")
	if subject != "" {
		return "There is no host" + subject + ": " + why + "."
	}
	first, size := utf8.DecodeRuneInString(why)
	return string(unicode.ToUpper(first)) + why[size:] + "."
}
