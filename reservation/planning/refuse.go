// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// refuse returns the reason why no start was found, and what would be accepted instead.
func (s refusing) refuse() *reservation.Refusal {
	r, never := s.refusal(), s.never()
	r.Constraint, r.Message = s.reason(r.Free, never)
	if !s.request.Maintenance { // which has all its hosts or none
		r.LargestQuantity = s.largest()
	}
	s.explainLying(r)
	if never || s.view.terse {
		r.BlockedBy = nil
		return r
	}
	if !s.fitsUnclaimed() {
		r.BlockedBy = nil
	}
	r.EarliestStart = s.earliest()
	return r
}

// fitsUnclaimed reports whether claims alone are in the way at the earliest requested start: without any,
// the hosts that are awake by then would hold the request, and it would keep the limit on hosts.
func (s refusing) fitsUnclaimed() bool {
	alone := onCalendar(s.search, s.view.Calendar.Unclaimed())
	_, ok := alone.find(s.startingAt(s.query.Ready), calendar.PolicyFirstFit)
	return ok
}

// limited returns the refusal if the request exceeds a limit; otherwise nil.
func (s refusing) limited() *reservation.Refusal {
	v, a := s.view, s.request
	constraint, text := v.Limits.exceeded(v.Now, v.Held, a.Quantity, a.window.Start, a.duration)
	if constraint == "" {
		constraint, text = v.Limits.tooManyHolds(v.Now, v.Held, a.hold)
	}
	if constraint == "" {
		return nil
	}
	return s.refuseLimit(constraint, text, s.largest())
}

// refuseLimit returns the refusal for a limit. It suggests a smaller quantity, up to largest, that
// keeps the limit.
func (s refusing) refuseLimit(constraint reservation.Constraint, text string, largest int) *reservation.Refusal {
	r := s.refusal()
	r.Constraint, r.Message, r.BlockedBy = constraint, text, nil
	switch constraint {
	case reservation.MaxHosts, reservation.MaxHostHours:
		r.LargestQuantity = largest
	case reservation.MaxStartAhead, reservation.MaxDuration, reservation.ExtensionTooEarly, reservation.MaxHolds:
		// A smaller quantity would start as late, last as long, and be held as well.
	}
	return r
}

// refuseLimits returns the refusal if a limit on the start that a search must find is the obstacle;
// otherwise nil.
func (s refusing) refuseLimits() *reservation.Refusal {
	if refusal := s.refuseHosts(); refusal != nil {
		return refusal
	}
	return s.refuseStartAhead()
}

// refuseStartAhead returns the refusal if the requested window has room only at starts that lie farther
// ahead than allowed; otherwise nil. A smaller quantity may start earlier.
func (s refusing) refuseStartAhead() *reservation.Refusal {
	later, last := s.query, s.query.Deadline.Add(-s.query.Duration)
	if later.Deadline = s.request.window.End; later.Deadline <= s.query.Deadline {
		return nil
	}
	start, ok := s.lasting(span.Forever).refusing().first(s.imaging().from(later, last+1))
	if !ok {
		return nil
	}
	r := s.refuseLimit(reservation.MaxStartAhead, fmt.Sprintf("the first start with room is %v; the farthest allowed now is %v", start, last), 0)
	r.LargestQuantity = s.largest()
	return r
}

// blocks returns the claims on hosts that overlap w.
func (s refusing) blocks(w span.Span, hosts hostset.Set) []reservation.Block {
	var blocks []reservation.Block
	if s.view.terse {
		return blocks
	}
	for _, number := range s.byName(hosts) {
		for _, held := range s.view.Calendar.Held(number, w) {
			if len(blocks) == reservation.MaxBlocks {
				return blocks
			}
			blocks = append(blocks, reservation.Block{Host: s.view.Hosts.names[number], Span: held})
		}
	}
	return blocks
}

// byName returns the numbers of the existing hosts among hosts, sorted by host name.
func (s refusing) byName(hosts hostset.Set) []int {
	var numbers []int
	for _, h := range s.view.Hosts.snapshot.Hosts() {
		if number := s.view.Hosts.numbers[h.Name]; hosts.Has(number) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// largest returns the largest quantity that would be accepted in the requested window, as long as answers hold.
func (s refusing) largest() int {
	if s.view.terse {
		return 0
	}
	if !s.request.immediate { // which waits as long whenever it comes
		s = s.lasting(s.latest()).refusing()
	}
	most := s.mostKept(s.query)
	if s.request.immediate && len(s.wakes) > 0 {
		awake := s.mostKept(s.allAwake())
		for _, wake := range s.wakes {
			most = max(most, min(awake, s.mostKept(s.startingAt(wake))))
		}
	}
	return s.ruled().valid(s.imaging().largestWithImage(min(most, s.view.Limits.quantity(s.view.Held, s.request.duration))))
}

// valid returns a quantity; 0 if it is too small to ask for.
func (s ruled) valid(quantity int) int {
	if quantity < s.request.Together.Values {
		return 0
	}
	return quantity
}

// earliest returns the first start at which there is room for the quantity; 0 if the limits or the
// hosts allow none.
func (s refusing) earliest() span.Instant {
	s = s.lasting(span.Forever).refusing()
	start, _ := s.first(s.ahead())
	return start
}

// first returns the first start of q at which there is room and the image, if there is one, can be on
// the hosts; 0 and false if there is none.
func (s refusing) first(q calendar.Query) (span.Instant, bool) {
	if s.staged == nil {
		return s.find(q, calendar.PolicyFirstFit)
	}
	p, ok := s.imaging().firstWithImage(q)
	return p.Span.Start, ok
}

// ahead returns the query for any start that the limits allow and that was not searched yet. A request
// that is refused now would start in the future, when the filter may match more hosts.
func (s refusing) ahead() calendar.Query {
	q, after := s.query, s.view.Now+1
	if s.filter.Timely() {
		after = s.view.future()
	}
	if s.request.hold > 0 { // which begins when the start is requested
		after = max(after, s.view.Now.Add(s.view.later+s.request.hold))
	}
	q.Ready, q.Hosts = max(q.Ready, after, s.fruitless+1), s.matching(true)
	q.Deadline = s.view.Limits.horizon(s.view.Now).Add(q.Duration)
	return q
}

// reason returns the constraint that failed, with a sentence.
func (s refusing) reason(free int, never bool) (reservation.Constraint, string) {
	if unknown := s.filter.Unknown(); len(unknown) > 0 {
		return reservation.HostsMatching, fmt.Sprintf("no host has a property $%s", strings.Join(unknown, ", $"))
	}
	if s.request.Maintenance {
		return reservation.HostsFree, s.promisedAlready(free)
	}
	quantity, matched, what := s.request.Quantity, s.mostMatched(), s.request.what()
	switch {
	case matched == 0 || s.request.Kind == reservation.Hosts && matched < quantity:
		if s.request.HostProperties != "" {
			return reservation.HostsMatching, fmt.Sprintf("not enough hosts available: %d in the pool match host_properties, %s asked for%s", matched, fault.Counted(quantity, what), s.bareAdvice())
		}
		return reservation.HostsInPool, fmt.Sprintf("not enough hosts available: the pool has %d, %s asked for", matched, fault.Counted(quantity, what))
	case never:
		constraint := reservation.HostsInPool
		if s.request.HostProperties != "" {
			constraint = reservation.HostsMatching
		}
		return constraint, s.tooSmall(s.matching(true))
	case s.request.window.Seconds() == s.request.duration:
		return reservation.HostsFree, fmt.Sprintf("not enough hosts available: %s asked for, there is room for %d from %v to %v",
			fault.Counted(quantity, what), free, s.request.window.Start, s.request.window.End)
	default:
		return reservation.HostsFree, fmt.Sprintf("not enough hosts available: no start between %v and %v has room for %s during %v",
			s.request.window.Start, s.query.Deadline.Add(-s.request.duration), fault.Counted(quantity, what), period(s.request.duration))
	}
}

// tooFew tells how many of its hosts a reservation can keep in a time, and how many were asked for if that is another number.
func tooFew(r *reservation.Reservation, kept, asked int, window span.Span) string {
	what, wish := "host", ""
	if r.Kind == reservation.Instances {
		what = "instance"
	}
	if asked != r.Quantity {
		wish = fault.Counted(asked, what) + " asked for, and "
	}
	return fmt.Sprintf("not enough hosts available: %sthe reservation can keep %d of its %s from %v to %v",
		wish, kept, fault.Counted(r.Quantity, what), window.Start, window.End)
}

// bareAdvice asks, at the end of a sentence, whether a filter lacks the $ of a property; "" if each of
// its comparisons has one.
func (s refusing) bareAdvice() string {
	bare := s.filter.Bare()
	if bare == "" {
		return ""
	}
	return fmt.Sprintf("; %q is a plain text: did you mean the property \"$%s\"?", bare, bare)
}

// promisedAlready returns a sentence that states why maintenance cannot have all its hosts.
func (s refusing) promisedAlready(free int) string {
	quantity, window := s.request.Quantity, s.request.window
	if window.Seconds() == s.request.duration {
		return fmt.Sprintf("reservations hold %d of the %s between %v and %v", quantity-free, fault.Counted(quantity, "host"), window.Start, window.End)
	}
	return fmt.Sprintf("no start between %v and %v has all of the %s free of reservations during %v",
		window.Start, s.query.Deadline.Add(-s.request.duration), fault.Counted(quantity, "host"), period(s.request.duration))
}
