// SPDX-License-Identifier: Apache-2.0

package reservations

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// offers handles POST /v1/offers.
func (s API) offers(c *serving.Call) (any, error) {
	var body v1.OffersRequest
	if _, err := c.Body(&body, serving.ReservationBody); err != nil {
		return nil, err
	}
	w, err := wish(body)
	if err != nil {
		return nil, err
	}
	by := c.Asker()
	offers, complete, err := s.Asked.Offers(c.Request.Context(), by.Caller(), w)
	if err != nil {
		return nil, err
	}
	limits, _ := s.Asked.Use(by.ProjectID)
	out := v1.Offers{Offers: []v1.RankedOffer{}, Complete: complete, MaxHold: v1.Duration(limits.Hold)}
	for i, a := range w.Alternatives {
		filter, err := inventory.ParseFilter([]byte(a.HostProperties), s.Snapshot(), by.SeesHidden())
		if err != nil {
			return nil, planning.OfAlternative(err, i)
		}
		out.UnknownProperties = append(out.UnknownProperties, filter.Unknown()...)
	}
	slices.Sort(out.UnknownProperties)
	out.UnknownProperties = slices.Compact(out.UnknownProperties)
	for _, o := range offers {
		out.Offers = append(out.Offers, ranked(o, by))
	}
	return out, nil
}

// defaultName is the name of the reservation of an offer unless the request has one.
const defaultName = "offer"

// wish converts a body to the domain's types. The default quantity is one.
func wish(body v1.OffersRequest) (planning.Wish, error) {
	w := planning.Wish{Name: cmp.Or(body.Name, defaultName), Quantity: planning.Range{Min: 1, Max: 1}}
	if body.Quantity != nil {
		w.Quantity = planning.Range{Min: int64(body.Quantity.Min), Max: int64(body.Quantity.Max)}
	}
	if body.Duration == nil {
		return w, fault.Field("duration", "is required: how long the reservation may last")
	}
	w.Duration = planning.Range{Min: int64(body.Duration.Min), Max: int64(body.Duration.Max)}
	for _, one := range body.Windows {
		var window span.Span
		if start := v1.InstantOf(one.Start); start != nil {
			window.Start = *start
		}
		if end := v1.InstantOf(one.End); end != nil {
			window.End = *end
		}
		w.Windows = append(w.Windows, window)
	}
	for i, a := range body.Alternatives {
		terms := reservation.Terms{
			Kind: reservation.Kind(a.Kind), HostProperties: string(a.HostProperties), Affinity: calendar.Affinity(a.Affinity),
		}
		if a.Resources != nil {
			terms.Resources = resource.Vector(*a.Resources)
		}
		if a.Together != nil {
			if terms.Together = togetherOf(*a.Together); terms.Together == (reservation.Together{}) {
				return w, planning.OfAlternative(noProperty(), i)
			}
		}
		w.Alternatives = append(w.Alternatives, terms)
	}
	return w, checkName(w.Name)
}

// ranked returns an offer in the JSON types.
func ranked(o planning.Offer, by *serving.Asker) v1.RankedOffer {
	plain := offer(o.Plan, by.ProjectID, false, by)
	return v1.RankedOffer{
		Start: plain.Start, End: plain.End, Quantity: plain.Quantity, Alternative: o.Alternative, Kind: plain.Kind, Hosts: plain.Hosts,
		Matched: plain.Matched, Together: plain.Together, GivesUp: givesUp(o), Request: requestFor(o.Plan),
	}
}

// requestFor returns the body that books a plan.
func requestFor(p planning.Plan) v1.ReservationRequest {
	start, end := p.Span.Start.Time(), p.Span.End.Time()
	r := v1.ReservationRequest{
		Name: p.Terms.Name, Kind: string(p.Terms.Kind), Quantity: &p.Terms.Quantity, StartTime: &start, EndTime: &end, Affinity: string(p.Terms.Affinity), Together: v1.WishOf(p.Terms.Together),
	}
	if p.Terms.HostProperties != "" {
		r.HostProperties = json.RawMessage(p.Terms.HostProperties)
	}
	if p.Terms.Kind == reservation.Instances {
		size := v1.Resources(p.Terms.Resources)
		r.Resources = &size
	}
	return r
}

// givesUp returns what an offer has less than all that was asked for, also in words.
func givesUp(o planning.Offer) v1.GivesUp {
	out := v1.GivesUp{
		Quantity: o.GivesUp.Quantity, Duration: v1.Duration(o.GivesUp.Duration), Wait: v1.Duration(o.GivesUp.Wait), Alternatives: o.GivesUp.Places, Together: o.Terms.Together.Broken,
	}
	var words []string
	if out.Quantity > 0 {
		words = append(words, fmt.Sprintf("%s fewer", fault.Counted(out.Quantity, string(o.Terms.Kind))))
	}
	if out.Duration > 0 {
		words = append(words, fmt.Sprintf("%v shorter", out.Duration))
	}
	if out.Wait > 0 {
		words = append(words, fmt.Sprintf("starts %v after the soonest offer", out.Wait))
	}
	if out.Alternatives > 0 {
		words = append(words, fmt.Sprintf("alternative %d in place of the first", o.Alternative+1))
	}
	if out.Together {
		words = append(words, fmt.Sprintf("its hosts do not lie by %s as preferred", o.Terms.Together.By))
	}
	out.Text = strings.Join(words, ", ")
	return out
}
