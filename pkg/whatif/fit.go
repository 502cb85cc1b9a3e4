// SPDX-License-Identifier: Apache-2.0

// Package whatif answers questions from files with the code that serves the cloud. Operators use it
// for explanations, and tests to check the papers' examples.
package whatif

import (
	"fmt"
	"io"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/tariff"
)

// FitQuestion asks when a number of hosts is available for a duration (paper 003). Times are whole
// numbers in any unit.
type FitQuestion struct {
	Hosts   int        `json:"hosts"`
	Now     int64      `json:"now"`
	Claims  []FitClaim `json:"claims"`
	Request struct {
		Ready    *int64 `json:"ready"`
		Duration *int64 `json:"duration"`
		Deadline *int64 `json:"deadline"`
		Quantity *int   `json:"quantity"`
	} `json:"request"`
	Policy string `json:"policy"`
	// Tariff is what a host costs for a unit of time, for the policy cheapest.
	Tariff []FitPrice `json:"tariff"`
}

// FitPrice is the price of a host from Start to End.
type FitPrice struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
	Price int64 `json:"price"`
}

// FitClaim is a span in which hosts are busy.
type FitClaim struct {
	Hosts []int `json:"hosts"`
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// FitAnswer contains the start and the hosts, or the reason of a refusal, and all candidates.
type FitAnswer struct {
	Accepted   bool           `json:"accepted"`
	Start      *int64         `json:"start,omitempty"`
	End        *int64         `json:"end,omitempty"`
	Hosts      []int          `json:"hosts,omitempty"`
	Cost       *int64         `json:"cost,omitempty"` // of each host, by the tariff
	Reason     string         `json:"reason,omitempty"`
	Candidates []FitCandidate `json:"candidates"`
	Slots      []FitSlot      `json:"slots"`
}

// FitCandidate is a feasible start with its availability rectangle.
type FitCandidate struct {
	Start int64 `json:"start"`
	Begin int64 `json:"begin"`
	End   int64 `json:"end"`
	Free  int   `json:"free"`
}

// FitSlot contains the hosts that are busy from Time until the next slot.
type FitSlot struct {
	Time int64 `json:"time"`
	Busy []int `json:"busy"`
}

const (
	mostHosts = 1_000_000
	mostTime  = 1 << 53 // the largest range that JSON numbers represent exactly
)

// Fit answers the question in r. Errors are Invalid faults that name the field; a refusal is an
// answer and no error.
func Fit(r io.Reader) (FitAnswer, error) {
	var q FitQuestion
	if err := read(r, &q); err != nil {
		return FitAnswer{}, err
	}
	query, policy, err := q.check()
	if err != nil {
		return FitAnswer{}, err
	}
	c, err := q.calendar()
	if err != nil {
		return FitAnswer{}, err
	}
	answer := FitAnswer{Candidates: []FitCandidate{}}
	for candidate := range c.Candidates(query) {
		answer.Candidates = append(answer.Candidates, FitCandidate{
			int64(candidate.Start), int64(candidate.Begin), int64(candidate.End), candidate.Free,
		})
	}
	curve, err := q.curve(query, policy)
	if err != nil {
		return FitAnswer{}, err
	}
	start, ok := c.Find(query, policy)
	if policy == calendar.PolicyCheapest {
		window := []span.Span{{Start: query.Ready, End: query.Deadline}}
		start, ok = curve.Cheapest(c.StartsWithin(query, window), query.Duration)
	}
	if ok {
		answer.price(curve, query.Window(start))
		if err := answer.book(c, query, start); err != nil {
			return FitAnswer{}, err
		}
	} else {
		answer.Reason = reason(query, q.Hosts)
	}
	answer.Slots = []FitSlot{}
	for _, slot := range c.Slots() {
		answer.Slots = append(answer.Slots, FitSlot{int64(slot.Time), slot.Busy})
	}
	return answer, nil
}

// check validates the request and returns it as a query.
func (q *FitQuestion) check() (calendar.Query, calendar.Policy, error) {
	r := q.Request
	policy := calendar.Policy(q.Policy)
	if q.Policy == "" {
		policy = calendar.PolicyFirstFit
	}
	var wrong error
	switch {
	case q.Hosts < 1 || q.Hosts > mostHosts:
		wrong = fault.Field("hosts", "must be from 1 to %d", mostHosts)
	case outOfRange(q.Now):
		wrong = fault.Field("now", "is out of range")
	case r.Ready == nil || outOfRange(*r.Ready) || *r.Ready < q.Now:
		wrong = fault.Field("request.ready", "is required, and must lie between now and 2^53")
	case r.Duration == nil || outOfRange(*r.Duration) || *r.Duration < 1:
		wrong = fault.Field("request.duration", "is required, and must be from 1 to 2^53")
	case r.Deadline == nil || outOfRange(*r.Deadline):
		wrong = fault.Field("request.deadline", "is required, and must lie between now and 2^53")
	case *r.Duration > *r.Deadline-*r.Ready:
		wrong = fault.Field("request.duration", "is longer than the window from ready to deadline")
	case r.Quantity == nil || *r.Quantity < 1:
		wrong = fault.Field("request.quantity", "is required, and must be at least 1")
	case !slices.Contains(calendar.Policies, policy):
		wrong = fault.Field("policy", "%s", fault.Unknown("policy", q.Policy, calendar.Policies))
	}
	if wrong != nil {
		return calendar.Query{}, "", wrong
	}
	return calendar.Query{
		Now: span.Instant(q.Now), Ready: span.Instant(*r.Ready), Duration: *r.Duration,
		Deadline: span.Instant(*r.Deadline), Quantity: *r.Quantity,
	}, policy, nil
}

func outOfRange(t int64) bool { return t < -mostTime || t > mostTime }

// curve returns the tariff of the question, which the policy cheapest needs for the whole window; nil if there is none.
func (q *FitQuestion) curve(query calendar.Query, policy calendar.Policy) (*tariff.Curve, error) {
	if len(q.Tariff) == 0 && policy != calendar.PolicyCheapest {
		return nil, nil
	}
	steps := make([]tariff.Step, len(q.Tariff))
	for i, p := range q.Tariff {
		if outOfRange(p.Start) || outOfRange(p.End) {
			return nil, fault.Field(fmt.Sprintf("tariff[%d]", i), "is out of range")
		}
		steps[i] = tariff.Step{Span: span.Span{Start: span.Instant(p.Start), End: span.Instant(p.End)}, Price: p.Price}
	}
	curve, err := tariff.New(steps)
	if err != nil {
		return nil, fault.Field("tariff", "%v", err)
	}
	if end := curve.Covered(query.Ready); policy == calendar.PolicyCheapest && end < query.Deadline {
		return nil, fault.Field("tariff", "has no price at %d; the policy cheapest needs all of them from ready to deadline", end)
	}
	return curve, nil
}

// calendar returns a calendar with the claims of the question. As in the paper, claims may overlap:
// a host that is claimed twice is busy.
func (q *FitQuestion) calendar() (*calendar.Calendar, error) {
	c := calendar.New(make([]resource.Vector, q.Hosts), span.Instant(q.Now))
	for i, claim := range q.Claims {
		w := span.Span{Start: span.Instant(claim.Start), End: span.Instant(claim.End)}
		switch {
		case len(claim.Hosts) == 0:
			return nil, fault.Field(fmt.Sprintf("claims[%d].hosts", i), "names no host")
		case outOfRange(claim.Start) || outOfRange(claim.End) || w.Empty():
			return nil, fault.Field(fmt.Sprintf("claims[%d].end", i), "must be after the start")
		}
		for _, host := range claim.Hosts {
			if host < 0 || host >= q.Hosts {
				return nil, fault.Field(fmt.Sprintf("claims[%d].hosts", i), "there is no host %d; they are 0 to %d", host, q.Hosts-1)
			}
			if err := c.Add(missing(c, host, w)...); err != nil {
				return nil, fmt.Errorf("enter claims[%d]: %w", i, err)
			}
		}
	}
	return c, nil
}

// missing returns claims for the parts of w in which host is not yet busy.
func missing(c *calendar.Calendar, host int, w span.Span) []calendar.Claim {
	var parts []calendar.Claim
	from := w.Start
	for _, held := range append(c.Held(host, w), span.Span{Start: w.End, End: w.End}) {
		if part := (span.Span{Start: from, End: held.Start}); !part.Empty() {
			parts = append(parts, calendar.Claim{Host: host, Span: part})
		}
		from = max(from, held.End)
	}
	return parts
}

// price sets the cost of each host of a reservation, if its prices are known.
func (a *FitAnswer) price(curve *tariff.Curve, w span.Span) {
	if curve == nil {
		return
	}
	if cost, known := curve.Cost(w); known {
		a.Cost = &cost
	}
}

// book claims, for the request, the free hosts with the lowest numbers at start.
func (a *FitAnswer) book(c *calendar.Calendar, q calendar.Query, start span.Instant) error {
	w := q.Window(start)
	var claims []calendar.Claim
	for host := range c.FreeAt(q, start).All() {
		if len(claims) == q.Quantity {
			break
		}
		claims = append(claims, calendar.Claim{Host: host, Span: w})
		a.Hosts = append(a.Hosts, host)
	}
	a.Accepted, a.Start, a.End = true, new(int64(w.Start)), new(int64(w.End))
	return c.Add(claims...)
}

// reason returns why no start fits the question, in words.
func reason(q calendar.Query, hosts int) string {
	if q.Quantity > hosts {
		return fmt.Sprintf("%d hosts are requested, and there are only %d", q.Quantity, hosts)
	}
	return fmt.Sprintf("no start from %d to %d has %d hosts free for %d", q.Ready, q.Deadline-span.Instant(q.Duration), q.Quantity, q.Duration)
}
