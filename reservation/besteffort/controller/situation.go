package controller

import (
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// endTakes is how many seconds a host is counted on as taken from now on whose
// reservation is over and whose end is still being carried out.
const endTakes = 60

// always is all time.
var always = span.Span{Start: math.MinInt64, End: span.Forever}

// Situation gives what the plan depends on.
func (g Ground) Situation(requests []Request, now span.Instant) besteffort.Situation {
	live := g.Promises.Live(always)
	s := besteffort.Situation{Now: now, Nodes: g.nodes(requests, live), Holds: g.holds(live, now)}
	for i := range requests {
		if r := &requests[i]; r.Cancelled == 0 && !r.settled() {
			s.Requests = append(s.Requests, r.planned())
		}
	}
	return s
}

// planned gives the request as the rules know it. VMs that are over stay in it: of a
// parallel request they count.
func (r *Request) planned() besteffort.Request {
	p := besteffort.Request{
		ID: r.ID, Submitted: r.Created, Place: r.Place, Shape: r.Shape, Duration: r.Duration, Parallel: r.Parallel,
	}
	for i := range r.VMs {
		v := &r.VMs[i]
		p.VMs = append(p.VMs, besteffort.VM{ID: v.ID, Phase: v.Phase, Node: v.Node, Since: v.Since, Until: v.Until, Ran: v.Ran})
	}
	return p
}

// nodes are the hosts of the pool that are up, with what is left on them beside the
// instances that are neither best-effort work nor those of a reservation, which holds the
// host itself.
func (g Ground) nodes(requests []Request, live []reservation.Reservation) (list []besteffort.Node) {
	ours, promised := map[string]bool{}, map[string]bool{}
	for i := range requests {
		for j := range requests[i].VMs {
			ours[requests[i].VMs[j].Server] = true
		}
	}
	for i := range live {
		promised[live[i].ID] = true
	}
	for _, h := range g.Snapshot().Hosts() {
		if !h.Reservable || h.Failure() != "" || h.Power == inventory.PowerSleeping || h.Power == inventory.PowerWaking {
			continue
		}
		free := h.Capacity
		if h.Instances == nil {
			free = h.Free()
		}
		for i := range h.Instances {
			if one := &h.Instances[i]; !ours[one.ID] && !promised[one.ReservationID()] {
				free = free.Sub(one.Flavor.Resources)
			}
		}
		list = append(list, besteffort.Node{Name: h.Name, Free: free.Max(resource.Vector{})})
	}
	return list
}

// holds are the claims of reservations, each with the time before in which its host is
// cleared. A reservation of instances closes its hosts to others as one of hosts does.
func (g Ground) holds(live []reservation.Reservation, now span.Instant) (list []besteffort.Hold) {
	for i := range live {
		for _, c := range live[i].Claims {
			end := c.Span.End
			if end <= now && end >= live[i].Span.End {
				end = now.Add(endTakes)
			}
			if end > now {
				list = append(list, besteffort.Hold{Node: c.Host, Span: span.Span{Start: c.Span.Start.Add(-g.Clear), End: end}})
			}
		}
	}
	return list
}

// deadline is until when a suspension on the node that should be over at an instant may
// last: patience seconds longer, but of the time in which the host is to be cleared half
// at most may pass.
func (g Ground) deadline(holds []besteffort.Hold, node string, until span.Instant, patience int64) span.Instant {
	next := until.Add(patience)
	for _, h := range holds {
		if h.Node == node && h.Span.End > until {
			next = min(next, h.Span.Start.Add(g.Clear/2))
		}
	}
	return max(next, until)
}

// held says that a reservation has the node now, or is about to.
func held(holds []besteffort.Hold, node string, now span.Instant) bool {
	return slices.ContainsFunc(holds, func(h besteffort.Hold) bool { return h.Node == node && h.Span.Contains(now) })
}
