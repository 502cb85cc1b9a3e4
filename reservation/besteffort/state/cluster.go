// SPDX-License-Identifier: Apache-2.0

package state

import (
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// endMargin is for how many seconds a host still counts as busy while its ended reservation is
// cleaned up.
const endMargin = 60

// ClusterView is the hosts and the reservations at one moment, as the planning of best-effort work
// requires them.
type ClusterView struct {
	Hosts *inventory.Snapshot
	Live  []reservation.Reservation
	// Clear is the number of seconds before the start of a reservation at which best-effort work
	// must have left its hosts.
	Clear int64
}

// Situation returns the input of a plan.
func (c *ClusterView) Situation(requests []Request, now span.Instant) besteffort.Situation {
	s := besteffort.Situation{Now: now, Nodes: c.nodes(requests), Holds: c.holds(now)}
	for i := range requests {
		if r := &requests[i]; r.Canceled == 0 && !r.Settled() {
			s.Requests = append(s.Requests, planned(r))
		}
	}
	return s
}

// planned returns the request in the form that the rules read. It includes VMs that are over,
// because they count in a parallel request.
func planned(r *Request) besteffort.Request {
	p := besteffort.Request{
		ID: r.ID, Submitted: r.Created, Place: r.Place, Shape: r.Shape, Duration: r.Duration, Parallel: r.Parallel,
	}
	for i := range r.VMs {
		v := &r.VMs[i]
		p.VMs = append(p.VMs, besteffort.VM{ID: v.ID, Phase: v.Phase, Node: v.Node, Since: v.Since, Until: v.Until, Ran: v.Ran})
	}
	return p
}

// Alone reports whether there is at most one host.
func (c *ClusterView) Alone() bool { return len(c.nodes(nil)) <= 1 }

// nodes returns the reservable hosts that are up. Their free capacity excludes what instances use
// that are neither best-effort work nor in a reservation: a reservation itself holds its hosts.
func (c *ClusterView) nodes(requests []Request) (list []besteffort.Node) {
	ours, promised := map[string]bool{}, map[string]bool{}
	for i := range requests {
		for j := range requests[i].VMs {
			ours[requests[i].VMs[j].Server] = true
		}
	}
	for i := range c.Live {
		promised[c.Live[i].ID] = true
	}
	for _, h := range c.Hosts.Hosts() {
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

// holds returns the claims of reservations, each including the time before it in which its host is
// cleared. Hosts of a reservation of kind instance are closed to best-effort work too.
func (c *ClusterView) holds(now span.Instant) (list []besteffort.Hold) {
	for i := range c.Live {
		for _, claim := range c.Live[i].Claims {
			end := claim.Span.End
			if end <= now && end >= c.Live[i].Span.End {
				end = now.Add(endMargin)
			}
			if end > now {
				list = append(list, besteffort.Hold{Node: claim.Host, Span: span.Span{Start: claim.Span.Start.Add(-c.Clear), End: end}})
			}
		}
	}
	return list
}

// Deadline returns the latest instant for the end of a suspension on the node that should be over
// at until: patience seconds later, but at most half of the time in which a host is cleared.
func (c *ClusterView) Deadline(holds []besteffort.Hold, node string, until span.Instant, patience int64) span.Instant {
	next := until.Add(patience)
	for _, h := range holds {
		if h.Node == node && h.Span.End > until {
			next = min(next, h.Span.Start.Add(c.Clear/2))
		}
	}
	return max(next, until)
}

// Claimed reports whether a reservation holds the node now, or will soon.
func Claimed(holds []besteffort.Hold, node string, now span.Instant) bool {
	return slices.ContainsFunc(holds, func(h besteffort.Hold) bool { return h.Node == node && h.Span.Contains(now) })
}
