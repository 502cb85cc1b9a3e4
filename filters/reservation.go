// Package filters answers for one host at a time whether it may hold a request.
// Each filter has a file, named as Nova or the papers name it. A filter that
// cannot tell refuses the host; it never lets one pass.
package filters

import (
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// ReservationHint is the scheduler hint that names a reservation.
const ReservationHint = "reservation"

// Fence says from when on a promised host is closed to instances that have no
// part in the promise.
type Fence string

// The fences.
const (
	// FenceAlways is paper 004's filter: a host with a claim ahead is closed, save
	// to preemptible instances.
	FenceAlways Fence = "always"
	// FenceLeadTime leaves it open until the lead time before the start.
	FenceLeadTime Fence = "lead_time"
)

// Promises tells what is promised.
type Promises interface {
	// Reservation gives a live reservation, false where there is none with that id.
	Reservation(id string) (reservation.Reservation, bool)
	// NextClaim gives the first time in which host is promised that ends after t.
	NextClaim(host string, t span.Instant) (span.Span, bool)
}

// Reservation is the filter of paper 004 section "Filtering". A request with a
// reservation's id as its hint may use that reservation's hosts, once it is active
// and for its project only. Any other request may use the hosts that the fence
// leaves open: none while a claim runs, and before its start as the Fence says.
type Reservation struct {
	Promises Promises
	Fence    Fence
	LeadTime int64 // seconds; for FenceLeadTime
}

// Name is the filter's name.
func (Reservation) Name() string { return "ReservationFilter" }

// For prepares the filter for one request and gives its word on each host.
func (f Reservation) For(req placing.Request, now span.Instant) func(host string) placing.Verdict {
	if hint, ok := req.Hints[ReservationHint]; ok {
		return f.inside(req, hint, now)
	}
	return func(host string) placing.Verdict { return f.outside(req, host, now) }
}

// inside judges for a request with the hint.
func (f Reservation) inside(req placing.Request, hint []string, now span.Instant) func(string) placing.Verdict {
	never := func(format string, args ...any) func(string) placing.Verdict {
		verdict := placing.Refuse(fmt.Sprintf(format, args...))
		return func(string) placing.Verdict { return verdict }
	}
	if len(hint) != 1 {
		return never("the hint %s must name one reservation", ReservationHint)
	}
	r, ok := f.Promises.Reservation(hint[0])
	if !ok || r.ProjectID != req.ProjectID {
		return never("the project has no reservation %s", hint[0])
	}
	if r.Status != reservation.Active || !r.Span.Contains(now) {
		return never("reservation %s is %s; it runs from %v to %v", r.ID, r.Status, r.Span.Start, r.Span.End)
	}
	hosts := make(map[string]bool, len(r.Claims))
	for _, name := range r.HostNames() {
		hosts[name] = true
	}
	return func(host string) placing.Verdict {
		if !hosts[host] {
			return placing.Refuse(fmt.Sprintf("the host is not one of reservation %s", r.ID))
		}
		return placing.Admit
	}
}

// outside judges for a request without the hint.
func (f Reservation) outside(req placing.Request, host string, now span.Instant) placing.Verdict {
	claim, ok := f.Promises.NextClaim(host, now)
	switch {
	case !ok:
		return placing.Admit
	case claim.Contains(now):
		return placing.Refuse(fmt.Sprintf("the host is reserved until %v", claim.End))
	case req.Preemptible:
		return placing.Admit
	case f.Fence == FenceLeadTime && now < claim.Start-span.Instant(f.LeadTime):
		return placing.Admit
	default:
		return placing.Refuse(fmt.Sprintf("the host is reserved from %v on", claim.Start))
	}
}
