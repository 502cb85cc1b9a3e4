// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/recurrence"
)

// The bounds of a series. While it is decided on, other decisions that claim time wait.
const (
	// MostOccurrences is the maximum number of occurrences of a series.
	MostOccurrences = 400
	// MostSeriesQuantity is the maximum sum of the hosts or instances of all occurrences.
	MostSeriesQuantity = 20_000
	// LongestSeries is how many seconds after now the last occurrence may start: ten years.
	LongestSeries = 10 * 366 * 24 * 3600
)

// SeriesRequest asks for a reservation at each occurrence of Rule, from its start on for Duration seconds. The times, the
// policy, the notice and the hold of the Request do not count.
type SeriesRequest struct {
	reservation.Request
	Rule recurrence.Rule
	// Expanded are the occurrences of Rule if they are known already; see Expand.
	Expanded []recurrence.Occurrence
	// Skip books the occurrences for which there is room; otherwise all are booked or none.
	Skip bool
}

// SeriesPlan is the result of a decision on a series.
type SeriesPlan struct {
	Occurrences []OccurrencePlan
	// Refused are the occurrences for which there is no room, all of them.
	Refused []reservation.RefusedOccurrence
}

// OccurrencePlan is the plan for one occurrence of a series.
type OccurrencePlan struct {
	Local string // see reservation.Occurrence
	Plan
}

// NewSeriesPlan decides on a series. Each occurrence sees the claims of those before it. If one is refused, the series is, with all
// occurrences that are, unless the request skips them and another one has room. Errors are those of NewPlan. A refusal names nothing
// that would be accepted instead; see ExplainSeries.
func NewSeriesPlan(v View, req SeriesRequest) (plan SeriesPlan, err error) {
	occurrences, err := occurrencesOf(v.Now, req)
	if err != nil {
		return plan, err
	}
	v = v.forSeries()
	var refusals refusals
	for i, o := range occurrences {
		p, err := NewPlan(v, atOccurrence(req, o))
		if refusals.add(o, err) {
			continue
		}
		if err != nil {
			return plan, ofSeries(err, "local_start")
		}
		v.add(p.member(i))
		plan.Occurrences = append(plan.Occurrences, OccurrencePlan{o.Local, p})
	}
	plan.Refused = refusals.list
	if len(plan.Refused) > 0 && (!req.Skip || len(plan.Occurrences) == 0) {
		return plan, refusals.refusal(len(occurrences))
	}
	return plan, nil
}

// Expand returns the request with the occurrences of its rule, at most one more than a series may have. A decision on the request
// expands the rule no more: the most expensive rule takes a third of a second, which no other decision should wait for.
func Expand(req SeriesRequest) SeriesRequest {
	if req.Expanded == nil {
		req.Expanded, _ = req.Rule.Occurrences(span.Forever, MostOccurrences+1)
	}
	return req
}

// forSeries returns the view of a decision on a series, which has a calendar of its own and matches a filter once.
func (v View) forSeries() View {
	v.Calendar = v.Calendar.Fork()
	return v.tersely().bounded(math.MaxInt)
}

// occurrencesOf returns the occurrences of a series. It fails with an Invalid fault if there are none, if there are too many, if one
// is too late, or if the first has begun.
func occurrencesOf(now span.Instant, req SeriesRequest) ([]recurrence.Occurrence, error) {
	list := Expand(req).Expanded
	switch latest := now.Add(LongestSeries); {
	case len(list) == 0:
		return nil, fault.Field("rule", "has no occurrence; all of them are left out")
	case len(list) > MostOccurrences:
		return nil, fault.Field("rule", "has more than the %d occurrences that a series may have, those of also among them; end it earlier with UNTIL or COUNT", MostOccurrences)
	case list[len(list)-1].Start > latest:
		return nil, fault.Field("rule", "has occurrences until %v, and those of a series begin before %v; end it with UNTIL or COUNT", list[len(list)-1].Start, latest)
	case list[0].Start < now:
		return nil, fault.Field("local_start", "the first occurrence begins at %v, which lies in the past; it is now %v", list[0].Start, now)
	case req.Duration <= 0 || req.Duration > longestDuration:
		return nil, fault.Field("duration", "must be from one second to 100 years")
	}
	return list, checkSum(req.Quantity, len(list))
}

// checkSum fails with an Invalid fault if so many occurrences, each with that quantity, have more than a series may have.
func checkSum(quantity, occurrences int) error {
	if quantity > MostSeriesQuantity/occurrences {
		return fault.Field("quantity", "is %d for each of %d occurrences; all together may have %d", quantity, occurrences, MostSeriesQuantity)
	}
	return nil
}

// atOccurrence returns the request for one occurrence.
func atOccurrence(req SeriesRequest, o recurrence.Occurrence) reservation.Request {
	one := req.Request
	one.Start, one.End = o.Start, o.Start.Add(req.Duration)
	one.Policy, one.Hold, one.Notice = calendar.PolicyFirstFit, 0, 0
	return one
}

// ExplainSeries returns the refusal of a series with the largest quantity with which all its occurrences would be booked; 0 if there
// is none. It decides on the series again a few times, with fewer hosts or instances.
func ExplainSeries(v View, req SeriesRequest, refusal *reservation.Refusal) *reservation.Refusal {
	r := *refusal
	occurrences, err := occurrencesOf(v.Now, req)
	if err != nil {
		return &r
	}
	r.BlockedBy = blocksOfFirst(v, req, occurrences)
	least := max(req.Together.Values, 1) // fewer than the values that they must have are no request
	r.LargestQuantity = largestAccepted(least, req.Quantity, func(quantity int) bool {
		req.Quantity = quantity
		_, refused := untilRefused(v, req, occurrences)
		return refused == len(occurrences)
	})
	return &r
}

// ExplainSeriesChange is ExplainSeries for a change; the quantity is that of all reservations.
func ExplainSeriesChange(v View, occurrences []reservation.Reservation, rule recurrence.Rule, c SeriesChange, refusal *reservation.Refusal) *reservation.Refusal {
	r := *refusal
	asked, least := 0, max(occurrences[0].Together.Values, 1)
	for _, o := range occurrences {
		asked = max(asked, o.Quantity)
	}
	if c.Quantity != nil {
		asked = *c.Quantity
	}
	r.LargestQuantity = largestAccepted(least, asked, func(quantity int) bool {
		c.Quantity = &quantity
		_, err := PlanSeriesChange(v, occurrences, rule, c)
		return err == nil
	})
	return &r
}

// untilRefused plans occurrences until one has no room. It returns the view with those before it, and its index.
func untilRefused(v View, req SeriesRequest, occurrences []recurrence.Occurrence) (View, int) {
	v = v.forSeries()
	for i, o := range occurrences {
		p, err := NewPlan(v, atOccurrence(req, o))
		if err != nil {
			return v, i
		}
		v.add(p.member(i))
	}
	return v, len(occurrences)
}

// blocksOfFirst returns what is in the way of the first occurrence that is refused, beside those before it.
func blocksOfFirst(v View, req SeriesRequest, occurrences []recurrence.Occurrence) []reservation.Block {
	v, first := untilRefused(v, req, occurrences)
	if first == len(occurrences) {
		return nil // room has appeared since
	}
	v.terse = false
	_, err := NewPlan(v, atOccurrence(req, occurrences[first]))
	if refusal, is := errors.AsType[*reservation.Refusal](err); is {
		return refusal.BlockedBy
	}
	return nil
}

// largestAccepted returns the largest quantity below asked, and not below least, that is accepted; 0 if there is none.
func largestAccepted(least, asked int, accepted func(quantity int) bool) int {
	more := sort.Search(max(asked-least, 0), func(i int) bool { return !accepted(least + i) })
	if more == 0 {
		return 0
	}
	return least + more - 1
}

// SeriesChange changes the occurrences of a series. A nil field leaves its part as it is.
type SeriesChange struct {
	// Change has neither times, nor a notice or a hold.
	Change
	// Duration is how many seconds each occurrence lasts from its start.
	Duration *int64
	// At is the local time of day, "15:04:05", at which each occurrence begins, on the day of its local time.
	At *string
}

// PlanSeriesChange decides on a change of some reservations of a series, which the view contains and which have not begun. It returns
// them after the change. If one is refused, the change is, with all that are. Errors are those of PlanChange.
func PlanSeriesChange(v View, occurrences []reservation.Reservation, rule recurrence.Rule, c SeriesChange) ([]reservation.Reservation, error) {
	changes := make([]Change, len(occurrences))
	for i, r := range occurrences {
		one, err := c.of(r, rule)
		if err != nil {
			return nil, err
		}
		changes[i] = one
	}
	if err := c.check(changes); err != nil {
		return nil, err
	}
	v = v.tersely()
	changed, err := changedInTurn(v, occurrences, changes)
	if _, refused := errors.AsType[*reservation.Refusal](err); refused {
		if exchanged, ok := changedAtOnce(v, occurrences, changes); ok {
			return exchanged, nil
		}
	}
	return changed, err
}

// check fails with an Invalid fault if all occurrences together would have more than a series may have, or if a time of day would make
// two of them begin at the same instant.
func (c SeriesChange) check(changes []Change) error {
	if c.Quantity != nil {
		if err := checkSum(*c.Quantity, len(changes)); err != nil {
			return err
		}
	}
	begins := make(map[span.Instant]bool)
	for _, one := range changes {
		if c.At != nil && begins[*one.Start] {
			return fault.Field("time_of_day", "would make two occurrences begin at %v; change them one by one", *one.Start)
		}
		begins[*one.Start] = true
	}
	return nil
}

// changedInTurn plans changes one after another. Each reservation is where it has been until its turn comes.
func changedInTurn(v View, occurrences []reservation.Reservation, changes []Change) ([]reservation.Reservation, error) {
	changed, backwards := slices.Clone(occurrences), false
	for i, r := range occurrences {
		backwards = backwards || *changes[i].Start > r.Span.Start // it goes where the next one may have its hosts
	}
	var refusals refusals
	for n := range changed {
		i := n
		if backwards {
			i = len(changed) - 1 - n
		}
		r := changed[i]
		v = v.Without(&r)
		p, err := PlanChange(v, r, changes[i])
		if refusals.add(recurrence.Occurrence{Local: r.Occurrence.Local, Start: r.Span.Start}, err) {
			v = v.with(&r)
			continue
		}
		if err != nil {
			return nil, ofSeries(err, "time_of_day")
		}
		changed[i] = ChangedAlone(r, p, v.Now)
		v = v.with(&changed[i])
	}
	if len(refusals.list) > 0 {
		return nil, refusals.refusal(len(changed))
	}
	return changed, nil
}

// changedAtOnce plans changes as if all reservations had left their hosts already, so that each can have those that another one
// leaves later. It returns false if there is no room for one of them.
func changedAtOnce(v View, occurrences []reservation.Reservation, changes []Change) ([]reservation.Reservation, bool) {
	held := v.Held
	for i := range occurrences {
		if changes[i].claimsAnew(&occurrences[i]) {
			v = v.Without(&occurrences[i])
		}
	}
	changed := slices.Clone(occurrences)
	for i, r := range occurrences {
		v.Held = held
		switch {
		case !changes[i].claimsAnew(&r):
			v = v.Without(&r)
		case v.Calendar.Fork().Add(v.Hosts.Claims(&r, r.Claims)...) != nil:
			v.Held = held.Without(&r)
			r.Claims = nil // another one of the series has these hosts already
		default:
			v.Held = held.Without(&r)
		}
		p, err := PlanChange(v, r, changes[i])
		if err != nil || len(p.Claims) == 0 {
			return nil, false
		}
		changed[i] = ChangedAlone(occurrences[i], p, v.Now)
		v = v.with(&changed[i])
		held = v.Held
	}
	return changed, true
}

// claimsAnew reports whether a change is one of what a reservation claims.
func (c Change) claimsAnew(r *reservation.Reservation) bool {
	c = c.differing(r)
	c.Name, c.OnEnd, c.BeforeEnd = nil, nil, nil
	return c != (Change{})
}

// of returns the change of one occurrence.
func (c SeriesChange) of(r reservation.Reservation, rule recurrence.Rule) (Change, error) {
	one, start, seconds := c.Change, r.Span.Start, r.Span.Seconds()
	if c.At != nil {
		day, _, _ := strings.Cut(r.Occurrence.Local, "T")
		at, err := rule.At(day + "T" + *c.At)
		if err != nil {
			return one, fault.Field("time_of_day", "%q is no time of day; write one such as 09:00", *c.At)
		}
		start = at
	}
	if c.Duration != nil {
		seconds = *c.Duration
	}
	if seconds <= 0 || seconds > longestDuration {
		return one, fault.Field("duration", "must be from one second to 100 years")
	}
	one.Start, one.End = new(start), new(start.Add(seconds))
	return one, nil
}

// refusals are those of the occurrences of a series.
type refusals struct {
	first    *reservation.Refusal
	earliest span.Instant // when its occurrence starts
	list     []reservation.RefusedOccurrence
}

// add adds the refusal of an occurrence, and reports whether err is one.
func (f *refusals) add(o recurrence.Occurrence, err error) bool {
	refusal, is := errors.AsType[*reservation.Refusal](err)
	if !is {
		return false
	}
	if f.first == nil || o.Start < f.earliest {
		f.first, f.earliest = refusal, o.Start
	}
	f.list = append(f.list, reservation.RefusedOccurrence{Local: o.Local, Start: o.Start, Constraint: refusal.Constraint, Message: refusal.Message})
	return true
}

// refusal returns that of a series with so many occurrences.
func (f *refusals) refusal(all int) *reservation.Refusal {
	r := *f.first
	slices.SortStableFunc(f.list, func(a, b reservation.RefusedOccurrence) int { return cmp.Compare(a.Start, b.Start) })
	r.Message = fmt.Sprintf("%d of %s cannot be had, the first at %s: %s", len(f.list), fault.Counted(all, "occurrence"), f.list[0].Local, r.Message)
	r.Occurrences = f.list[:min(len(f.list), reservation.MaxRefused)]
	return &r
}

// ofSeries returns an error about an occurrence as one about its series: the start of an occurrence follows from the field start, and
// its end from the duration.
func ofSeries(err error, start string) error {
	f, is := errors.AsType[*fault.Error](err)
	if !is || f.Field != "start_time" && f.Field != "end_time" {
		return err
	}
	of := *f
	if of.Field = "duration"; f.Field == "start_time" {
		of.Field = start
	}
	return &of
}
