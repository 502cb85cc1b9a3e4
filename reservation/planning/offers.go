// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Offer is one of the offers for a wish, and what it has less.
type Offer struct {
	Plan
	// Alternative is the index of the alternative of the wish that it is.
	Alternative int
	GivesUp     GivesUp
}

// GivesUp is what an offer has less than all that its wish asks for; the zero GivesUp means that it has all.
type GivesUp struct {
	Quantity int   // how many fewer hosts or instances than the most that the wish asks for
	Duration int64 // how many seconds shorter than the longest that the wish asks for
	Wait     int64 // how many seconds it starts after the soonest of the offers
	Places   int   // how many alternatives the wish prefers to its own
}

// MostOffers is the largest number of offers for a wish.
const MostOffers = 6

// Offers returns the offers for a wish, the best first; complete is false if the search ended before it had tried
// everything, so that better ones may exist. Each of them is what NewPlan returns for its start, end and quantity. Of each
// alternative they are the first options in four orders:
//
//   - most hosts, then longest, then soonest
//   - soonest, then most hosts, then longest
//   - soonest, then longest, then most hosts
//   - longest, then most hosts, then soonest
//
// An option is no offer if another one is at least as good in its start, quantity, duration and alternative. The error is
// an Invalid fault for an invalid wish. If there is no offer, it is the *reservation.Refusal of the smallest quantity and
// the shortest duration of the first alternative.
func Offers(v View, asked Wish) (offers []Offer, complete bool, err error) {
	w, err := parseWish(asked, v)
	if err != nil {
		return nil, false, err
	}
	v = v.bounded(mostLooked)
	cut := false
	var searches []ranging
	for i := range w.alternatives {
		r, err := newRanging(v, &w, i, &cut)
		if err != nil {
			return nil, false, OfAlternative(err, i)
		}
		searches = append(searches, r)
	}
	var options []option
	for _, r := range searches { // before the effort of the next ones can end
		if least, ok := r.least(); ok {
			options = append(options, least)
		}
	}
	for _, least := range slices.Clone(options) {
		options = append(options, searches[least.alternative].options(least)...)
	}
	if len(options) == 0 {
		return nil, false, w.refuse(v)
	}
	for _, o := range w.ranked(options) {
		offers = append(offers, searches[o.alternative].offer(o))
	}
	compared(offers, w)
	return offers, !cut, nil
}

// refuse returns the refusal of the least that the wish asks for.
func (w *wish) refuse(v View) error {
	a := w.alternatives[0]
	_, err := NewPlan(v.lasting(span.Forever), reservation.Request{Terms: a.Terms, Start: a.window.Start, End: a.window.End, Duration: a.duration})
	return err
}

// options returns the first option of the alternative in each of the orders of Offers, given its least.
func (r ranging) options(least option) []option {
	wide := r.mostAt(least)
	return []option{r.longest(r.most(wide)), r.longestAt(wide), r.mostAt(r.longestAt(least)), r.most(r.longest(least))}
}

// offer returns the offer of an option.
func (r ranging) offer(o option) Offer {
	s := r.asked.with(int(o.quantity))
	s.request.duration, s.query.Duration = o.duration, o.duration
	return Offer{Plan: s.planOn(o.start, s.claims(o.start)), Alternative: o.alternative}
}

// ranked returns the options that no other one is as good as, at most MostOffers: those with the whole quantity and duration
// first, then those of a preferred alternative, with more host-time, with a sooner start, with more hosts.
func (w *wish) ranked(options []option) []option {
	best := slices.DeleteFunc(slices.Clone(options), func(o option) bool {
		return slices.ContainsFunc(options, func(other option) bool { return other.beats(o) })
	})
	slices.SortFunc(best, func(a, b option) int {
		return cmp.Or(
			compareBool(w.whole(b), w.whole(a)), cmp.Compare(a.alternative, b.alternative),
			cmp.Compare(b.quantity*b.duration, a.quantity*a.duration), cmp.Compare(a.start, b.start), cmp.Compare(b.quantity, a.quantity),
		)
	})
	best = slices.Compact(best)
	return best[:min(len(best), MostOffers)]
}

// whole reports whether an option has the largest quantity and the longest duration.
func (w *wish) whole(o option) bool {
	return o.quantity == w.quantity.Max && o.duration == w.duration.Max
}

// beats reports whether o is as good as another option in all, and better in something.
func (o option) beats(other option) bool {
	return o != other && o.start <= other.start && o.quantity >= other.quantity && o.duration >= other.duration && o.alternative <= other.alternative
}

// compared sets what offers have less than the wish asks for.
func compared(offers []Offer, w wish) {
	soonest := span.Forever
	for _, o := range offers {
		soonest = min(soonest, o.Span.Start)
	}
	for i := range offers {
		o := &offers[i]
		o.GivesUp = GivesUp{
			Quantity: int(w.quantity.Max) - o.Terms.Quantity, Duration: w.duration.Max - o.Span.Seconds(),
			Wait: int64(o.Span.Start - soonest), Places: o.Alternative,
		}
	}
}
