package booking

import (
	"fmt"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// refuse explains why no start was found, and what could be had instead.
func (s *search) refuse() *reservation.Refusal {
	r, never := s.refusal(), s.never()
	r.Constraint, r.Message = s.reason(r.Free, never)
	r.LargestQuantity = s.largest()
	if never {
		r.BlockedBy = nil
		return r
	}
	r.EarliestStart = s.earliest()
	return r
}

// limited returns the refusal of a request that breaks a limit, nil for one that keeps all.
func (s *search) limited() *reservation.Refusal {
	v, a := s.view, s.ask
	constraint, text := v.Limits.exceeded(v.Now, v.Held, a.Quantity, a.window.Start, a.duration)
	if constraint == "" {
		return nil
	}
	return s.refuseLimit(constraint, text, s.largest())
}

// refuseLimit explains that a limit stands in the way, and no claim of others. Fewer
// hosts, up to largest, may help.
func (s *search) refuseLimit(constraint reservation.Constraint, text string, largest int) *reservation.Refusal {
	r := s.refusal()
	r.Constraint, r.Message, r.BlockedBy = constraint, text, nil
	switch constraint {
	case reservation.MaxHosts, reservation.MaxHostHours:
		r.LargestQuantity = largest
	case reservation.MaxStartAhead, reservation.MaxDuration, reservation.ExtensionTooEarly:
		// Fewer hosts would start as late and last as long.
	}
	return r
}

// refusal has the figures of the earliest asked start.
func (s *search) refusal() *reservation.Refusal {
	at := s.query
	at.Deadline = at.Ready.Add(at.Duration)
	return &reservation.Refusal{
		Matched:   s.matched,
		Free:      s.most(at),
		BlockedBy: s.blocks(span.New(at.Ready, at.Duration), at.Hosts),
	}
}

// blocks gives the claims on hosts that share an instant with w.
func (s *search) blocks(w span.Span, hosts hostset.Set) []reservation.Block {
	var blocks []reservation.Block
	for _, number := range s.byName(hosts) {
		for _, held := range s.view.Calendar.Held(number, w) {
			if len(blocks) == reservation.MaxBlocks {
				return blocks
			}
			blocks = append(blocks, reservation.Block{Host: s.view.roster.names[number], Span: held})
		}
	}
	return blocks
}

// byName gives the numbers of hosts that are there, by host name.
func (s *search) byName(hosts hostset.Set) []int {
	var numbers []int
	for _, h := range s.view.roster.snapshot.Hosts() {
		if number := s.view.roster.numbers[h.Name]; hosts.Has(number) {
			numbers = append(numbers, number)
		}
	}
	return numbers
}

// largest is the largest quantity that would be accepted in the asked window.
func (s *search) largest() int {
	most := s.mostKept(s.query)
	if s.ask.immediate && len(s.wakes) > 0 {
		awake := s.mostKept(s.allAwake())
		for _, wake := range s.wakes {
			most = max(most, min(awake, s.mostKept(s.startingAt(wake))))
		}
	}
	return min(most, s.view.Limits.quantity(s.view.Held, s.ask.duration))
}

// earliest is the first start at which the quantity has room, 0 where the limit
// or the hosts allow none.
func (s *search) earliest() span.Instant {
	q := s.ahead()
	start, ok := s.find(q, calendar.PolicyFirstFit)
	if ok && s.staged != nil {
		var p *Plan
		if p, _ = s.laterWithImage(q, s.planAt(start, false)); p != nil {
			return p.Span.Start
		}
		return 0
	}
	if ok {
		return start
	}
	return 0
}

// ahead is the query for any start that the limits allow. One that is refused now lies
// ahead, where the filter may mean more hosts.
func (s *search) ahead() calendar.Query {
	q := s.query
	q.Ready, q.Hosts = max(q.Ready, s.view.Now+1), s.matching(true)
	if q.Hosts.Equal(s.query.Hosts) {
		q.Ready = max(q.Ready, s.fruitless+1) // the starts before were looked at already
	}
	q.Deadline = s.view.Limits.horizon(s.view.Now).Add(q.Duration)
	return q
}

// reason names the constraint that failed, with a sentence.
func (s *search) reason(free int, never bool) (reservation.Constraint, string) {
	if unknown := s.filter.Unknown(); len(unknown) > 0 {
		return reservation.HostsMatching, fmt.Sprintf("no host has a property $%s", strings.Join(unknown, ", $"))
	}
	quantity, what := s.ask.Quantity, "host"
	if s.ask.Kind == reservation.Instances {
		what = "instance"
	}
	switch {
	case s.matched == 0 || s.ask.Kind == reservation.Hosts && s.matched < quantity:
		if s.ask.HostProperties != "" {
			return reservation.HostsMatching, fmt.Sprintf("not enough hosts available: %d match host_properties, %s asked for", s.matched, counted(quantity, what))
		}
		return reservation.HostsInPool, fmt.Sprintf("not enough hosts available: the pool has %d, %s asked for", s.matched, counted(quantity, what))
	case never:
		constraint := reservation.HostsInPool
		if s.ask.HostProperties != "" {
			constraint = reservation.HostsMatching
		}
		return constraint, s.tooSmall(s.matching(true))
	case s.ask.window.Seconds() == s.ask.duration:
		return reservation.HostsFree, fmt.Sprintf("not enough hosts available: %s asked for, there is room for %d from %v to %v",
			counted(quantity, what), free, s.ask.window.Start, s.ask.window.End)
	default:
		return reservation.HostsFree, fmt.Sprintf("not enough hosts available: no start between %v and %v has room for %s during %v",
			s.ask.window.Start, s.query.Deadline.Add(-s.ask.duration), counted(quantity, what), period(s.ask.duration))
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
