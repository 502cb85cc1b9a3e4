// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// wished is a request for offers: one request for each alternative, and ranges.
type wished struct {
	alternatives     []asked
	quantity, length [2]int64
	windows          []span.Span
}

// drawTogether draws how the hosts of a request by a caller lie to each other, whose smallest quantity is least.
func (s *scene) drawTogether(by, affinity string, least int64) *v1.TogetherWish {
	t, w := s.t, &v1.TogetherWish{By: "rack"}
	rules := []string{"", "", "", "same", "same", "fewest"}
	if least > 1 && affinity != "same" {
		rules = append(rules, "spread", "spread")
	}
	if w.Rule = rapid.SampledFrom(rules).Draw(t, "rule"); w.Rule == "spread" {
		w.Values = 2
	}
	if w.Rule == "same" || w.Rule == "spread" {
		w.Required = rapid.SampledFrom([]*bool{nil, nil, new(true), new(false)}).Draw(t, "required")
	}
	if own := slices.DeleteFunc(s.live(), func(r reservation.Reservation) bool {
		return r.ProjectID != strings.TrimSuffix(by, "/admin") || r.Maintenance || r.Kind == reservation.Addresses
	}); len(own) > 0 && rapid.IntRange(0, 4).Draw(t, "apart") == 0 {
		w.ApartFrom = []string{own[rapid.IntRange(0, len(own)-1).Draw(t, "from")].ID}
	}
	if w.Rule == "" && w.ApartFrom == nil {
		return nil
	}
	return w
}

func (s *scene) drawWished(by string) wished {
	t := s.t
	var w wished
	w.quantity[0] = rapid.Int64Range(1, 3).Draw(t, "least quantity")
	w.quantity[1] = rapid.Int64Range(w.quantity[0], 5).Draw(t, "most quantity")
	w.length[0] = drawTicks(t, 1, 6, "shortest")
	w.length[1] = w.length[0] + drawTicks(t, 0, 8, "and longer") + rapid.Int64Range(0, 1).Draw(t, "and a second")
	for range rapid.IntRange(1, 3).Draw(t, "alternatives") {
		q := s.drawAsked()
		q.policy, q.image = "", "" // offers do not look at them
		q.together = s.drawTogether(by, q.affinity, w.quantity[0])
		w.alternatives = append(w.alternatives, q)
	}
	next := s.soon(rapid.IntRange(0, 5).Draw(t, "first window"))
	for range rapid.IntRange(0, 2).Draw(t, "windows") {
		one := span.New(next, w.length[0]+drawTicks(t, 0, 8, "window"))
		w.windows, next = append(w.windows, one), one.End+tick
	}
	return w
}

func (w wished) body() map[string]any {
	b := map[string]any{
		"name": "asked", "quantity": map[string]any{"min": w.quantity[0], "max": w.quantity[1]}, "duration": map[string]any{"min": w.length[0], "max": w.length[1]},
	}
	var alternatives, windows []map[string]any
	for _, q := range w.alternatives {
		one := q.body()
		for _, field := range []string{"name", "quantity", "start_time", "end_time", "duration"} {
			delete(one, field)
		}
		alternatives = append(alternatives, one)
	}
	for _, one := range w.windows {
		windows = append(windows, map[string]any{"start": clock(one.Start), "end": clock(one.End)})
	}
	b["alternatives"] = alternatives
	if windows != nil {
		b["windows"] = windows
	}
	return b
}

// askOffers asks for offers and books each in a copy of the scene. If there is none, no alternative has room for the least
// at any time of the windows.
func (s *scene) askOffers(by string, w wished) {
	s.t.Helper()
	a := s.send(inquiry{by, "POST", "/v1/offers", "", w.body()})
	s.t.Logf("question at %v: %v", s.now, a)
	if a.refusal != nil {
		s.holdNoOffers(by, w, *a.refusal)
		return
	}
	if !a.granted() {
		s.t.Fatalf("%v", a)
	}
	answered := decode[v1.Offers](s.t, answer{body: a.body})
	if len(answered.Offers) == 0 || !answered.Complete {
		s.t.Fatalf("there are no offers, or the search has ended early: %v", a)
	}
	soonest := slices.MinFunc(answered.Offers, func(a, b v1.RankedOffer) int { return a.Start.Compare(b.Start) }).Start
	for _, o := range answered.Offers {
		s.bookOffer(by, w, o)
		length := int64(o.End.Sub(o.Start).Seconds())
		want := v1.GivesUp{
			Quantity: int(w.quantity[1]) - o.Quantity, Duration: v1.Duration(w.length[1] - length), Wait: v1.Duration(o.Start.Sub(soonest).Seconds()),
			Alternatives: o.Alternative, Together: o.Together != nil && !o.Together.Kept, Text: o.GivesUp.Text,
		}
		if o.GivesUp != want || (o.GivesUp.Text == "") != (o.GivesUp == v1.GivesUp{}) {
			s.t.Fatalf("%+v is not what %+v gives up", o.GivesUp, o)
		}
		inside := len(w.windows) == 0
		for _, one := range w.windows {
			inside = inside || one.Covers(span.Span{Start: span.At(o.Start), End: span.At(o.End)})
		}
		if !inside || int64(o.Quantity) < w.quantity[0] || length < w.length[0] {
			s.t.Fatalf("%+v is not in the ranges", o)
		}
		// A larger and a longer one at the same start is refused, or offered.
		q := w.alternatives[o.Alternative]
		q.start, q.end, q.duration, q.quantity = span.At(o.Start), 0, length, o.Quantity
		if better := slices.ContainsFunc(answered.Offers, func(other v1.RankedOffer) bool {
			return !other.Start.After(o.Start) && other.Quantity > o.Quantity && other.Alternative <= o.Alternative
		}); !better && int64(o.Quantity) < w.quantity[1] {
			s.refuses(by, q.times(o.Quantity+1), "one more than an offer")
		}
	}
}

// bookOffer books an offer in a copy of the scene.
func (s *scene) bookOffer(by string, w wished, o v1.RankedOffer) {
	s.t.Helper()
	var body map[string]any
	raw, err := json.Marshal(o.Request)
	must(s.t, err)
	must(s.t, json.Unmarshal(raw, &body))
	booked := s.copied(nil).send(inquiry{by, "POST", "/v1/reservations", "", body})
	if !booked.granted() {
		s.t.Fatalf("the offer cannot be booked: %v", booked)
	}
	r := decode[v1.Reservation](s.t, answer{body: booked.body})
	if !r.Start.Equal(o.Start) || !r.End.Equal(o.End) || r.Quantity != o.Quantity || r.Kind != o.Kind || r.Kind != w.alternatives[o.Alternative].kind ||
		!slices.Equal(slices.Sorted(slices.Values(r.Hosts)), o.Hosts) {
		s.t.Fatalf("%+v was offered, and this is booked: %+v", o, r)
	}
	if diff := cmp.Diff(o.Together, r.Together); diff != "" || (o.Together == nil) != (w.alternatives[o.Alternative].together == nil) {
		s.t.Fatalf("the hosts lie otherwise (-offer +booking):\n%s", diff)
	}
}

// holdNoOffers holds the refusal of offers to what it says.
func (s *scene) holdNoOffers(by string, w wished, r v1.Refusal) {
	s.t.Helper()
	windows := w.windows
	if windows == nil {
		windows = []span.Span{{Start: s.now, End: s.end()}}
	}
	for i, q := range w.alternatives {
		q.quantity, q.duration = int(w.quantity[0]), w.length[0]
		for j, one := range windows {
			q.start, q.end = one.Start, one.End
			if i == 0 && j == 0 && w.windows != nil && (q.together == nil || q.together.ApartFrom == nil) { // others may be gone, not those
				s.holdRefusal(by, q, r)
			}
			if int64(one.Seconds()) >= q.duration {
				s.refuses(by, q, "an alternative, though there is no offer,")
			}
		}
	}
}
