// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"errors"
	"maps"
	"slices"
	"sort"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// ExplainLease returns err, which NewLeasePlan has returned, as an error about the whole lease. MemberOf still knows the
// reservation.
func ExplainLease(v View, req reservation.LeaseRequest, err error) error {
	refusal, refused := errors.AsType[*reservation.Refusal](err)
	if !refused {
		return err
	}
	v = v.bounded(explaining * mostLooked)
	r := *refusal
	fits := fitsWithoutOthers(v, req)
	if r.EarliestStart = 0; fits && mayStartLater(v, req, &r) {
		r.EarliestStart = earliestLease(v.lasting(span.Forever), req)
	}
	if r.Constraint == reservation.HostsFree || len(r.BlockedBy) > 0 {
		r.BlockedBy = blocksOfLease(v, req)
	}
	of, is := errors.AsType[*memberError](err)
	if !is {
		return &r
	}
	if len(req.Members) > 1 || startsNow(v, req) {
		r.LargestQuantity = largestInLease(v.lasting(latestOf(v, req)), req, of.member)
	}
	return &memberError{&r, of.member}
}

// lengthOf returns how many seconds a requested lease lasts, at another start too.
func lengthOf(v View, req reservation.LeaseRequest) int64 {
	if req.Duration != 0 {
		return req.Duration
	}
	return requestedWindow(v, req).Seconds()
}

// latestOf returns the last start of a requested lease.
func latestOf(v View, req reservation.LeaseRequest) span.Instant {
	return requestedWindow(v, req).End.Add(-lengthOf(v, req))
}

// earliestLease returns the first start at which the same request would be accepted; 0 if there is
// none, or if it is not among the first mostStarts at which room appears.
func earliestLease(v View, req reservation.LeaseRequest) span.Instant {
	w, seconds := requestedWindow(v, req), lengthOf(v, req)
	tries := leaseTries{duration: seconds, window: span.Span{Start: max(w.Start, v.Now), End: lastInstant}}
	if v.Limits.StartAhead > 0 {
		tries.window.End = min(tries.window.End, v.Limits.horizon(v.Now).Add(seconds))
	}
	if v.timely(req) {
		tries.window.Start = max(tries.window.Start, v.future())
	}
	if req.Minutes {
		tries.unit = minute
	}
	if tries.window.Seconds() < seconds {
		return 0
	}
	req.Duration, req.End = seconds, tries.window.End
	plan, err := tries.plan(v, req)
	if err != nil {
		return 0
	}
	return plan.Span.Start
}

// timely reports whether a reservation of the lease has a filter that may match other hosts in the future than now.
func (v View) timely(req reservation.LeaseRequest) bool {
	t := leaseTry{LeaseRequest: req, span: requestedWindow(v, req)}
	return slices.ContainsFunc(req.Members, func(m reservation.MemberRequest) bool {
		if m.Kind == reservation.Addresses {
			return false
		}
		s, err := t.searchFor(v, m)
		return err == nil && s.filter.Timely()
	})
}

// largestInLease returns the largest quantity of one reservation with which the lease would be accepted
// in the requested time, if the others get their Min; 0 if that is unknown because it takes too long.
func largestInLease(v View, req reservation.LeaseRequest, member int) int {
	req.Members = slices.Clone(req.Members)
	for i := range req.Members {
		if m := &req.Members[i]; m.Kind != reservation.Addresses {
			m.Max = leastOf(*m)
		}
	}
	m := &req.Members[member]
	least, refused := max(len(m.RequiredAddresses), 1), leastOf(*m)
	if m.Kind == reservation.Addresses {
		refused = m.Max
	}
	accepted := sort.Search(refused-least, func(more int) bool {
		m.Min, m.Max = least+more, least+more
		if v.effort.over() {
			return true
		}
		_, err := NewLeasePlan(v, req)
		return err != nil
	})
	if accepted == 0 || v.effort.over() {
		return 0
	}
	return least + accepted - 1
}

// fitsWithoutOthers reports whether the lease would have room if nobody had reserved anything, there
// were no limits, and all hosts were awake.
func fitsWithoutOthers(v View, req reservation.LeaseRequest) bool {
	start, capacities := max(requestedWindow(v, req).Start, v.Now+1), v.capacities()
	for number := range v.Hosts.names {
		if h := v.Hosts.Host(number); h != nil {
			if awake := v.awakeAt(h); awake != span.Forever {
				start = max(start, awake)
			}
		}
	}
	v.Calendar, v.Held, v.Limits = calendar.New(capacities, v.Now), Held{}, Limits{}
	v.Pools = maps.Clone(v.Pools)
	for network, pool := range v.Pools {
		pool.Booked = nil
		v.Pools[network] = pool
	}
	_, err := leasePlanAt(v, req, span.New(start, lengthOf(v, req)))
	return err == nil
}

// capacities returns the capacities of the hosts, by number.
func (v View) capacities() []resource.Vector {
	list := make([]resource.Vector, len(v.Hosts.names))
	for number := range list {
		if h := v.Hosts.Host(number); h != nil {
			list[number] = h.Capacity
		}
	}
	return list
}

// blocksOfLease returns the claims on the hosts of all reservations of the lease in the requested time;
// none if the lease would be refused without them too.
func blocksOfLease(v View, req reservation.LeaseRequest) []reservation.Block {
	open := v
	open.Calendar = calendar.New(v.capacities(), v.Now)
	if _, err := NewLeasePlan(open, req); err != nil {
		return []reservation.Block{}
	}
	t := leaseTry{LeaseRequest: req, span: requestedWindow(v, req)}
	t.span.End = t.span.Start.Add(lengthOf(v, req))
	if wakes := wakesOf(v, req, t.span); startsNow(v, req) && req.EndFollows && len(wakes) > 0 {
		t.span.End = wakes[len(wakes)-1].Add(lengthOf(v, req))
	}
	hosts := hostset.New(v.Calendar.Hosts())
	var last *search
	for _, m := range req.Members {
		if m.Kind == reservation.Addresses {
			continue
		}
		if s, err := t.searchFor(v, m); err == nil {
			hosts.Unite(s.query.Hosts)
			if startsNow(v, req) { // or when hosts have booted
				hosts.Unite(s.matching(true))
			}
			last = s
		}
	}
	if last == nil {
		return nil
	}
	return last.refusing().blocks(last.request.window, hosts)
}
