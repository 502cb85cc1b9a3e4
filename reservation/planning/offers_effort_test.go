// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Offers whose search has ended early can be booked, and say that better ones may exist.
func TestWhatOffersCostIsBounded(t *testing.T) {
	v, req := crowded(t)
	w := Wish{Name: "w", Quantity: Range{1, 450}, Duration: Range{60, int64(req.End - v.Now)}, Windows: []span.Span{{End: req.End}}}
	for i := range MostOfferAlternatives {
		a := reservation.Terms{Kind: reservation.Instances, Resources: req.Members[i].Resources}
		w.Alternatives = append(w.Alternatives, a)
	}
	all := v.bounded(1 << 60)
	best, complete, err := Offers(all, w)
	if err != nil || !complete || len(best) < 2 {
		t.Fatalf("%d offers, complete: %v, %v", len(best), complete, err)
	}
	for _, most := range []int{1, 1000, 5000} {
		spending := v.bounded(most)
		offers, complete, err := Offers(spending, w)
		if err != nil || complete {
			t.Errorf("the offers are complete: %v, %v", complete, err)
		}
		// What every alternative has at least, and what there is at its start, is looked for in any case.
		always := len(w.Alternatives) * (1 + (1+6)*slicesCost) * len(v.Hosts.names)
		if spent := most - spending.effort.left; spent > most+always || spent >= 1<<60-all.effort.left {
			t.Errorf("the offers looked at %d hosts, want at most %d more than %d", spent, always, most)
		}
		if len(offers) == 0 {
			t.Error("there is no offer")
		}
		for _, o := range offers {
			terms := w.Alternatives[o.Alternative]
			terms.Quantity = o.Terms.Quantity
			if _, err := NewPlan(v, reservation.Request{Terms: terms, Start: o.Span.Start, End: o.Span.End}); err != nil {
				t.Errorf("%v for %d is refused: %v", o.Span, o.Terms.Quantity, err)
			}
		}
	}
}

func TestAWishNamesWhatIsWrong(t *testing.T) {
	v, _ := crowded(t)
	right := Wish{Name: "w", Quantity: Range{1, 2}, Duration: Range{60, 120}}
	for field, alter := range map[string]func(w *Wish){
		"quantity.min":              func(w *Wish) { w.Quantity.Min = 0 },
		"quantity.max":              func(w *Wish) { w.Quantity = Range{3, 2} },
		"duration.min":              func(w *Wish) { w.Duration.Min = -1 },
		"duration.max":              func(w *Wish) { w.Duration.Max = longestDuration + 1 },
		"windows":                   func(w *Wish) { w.Windows = []span.Span{span.New(v.Now, 59), span.New(v.Now+100, 59)} },
		"windows[1].start":          func(w *Wish) { w.Windows = []span.Span{{}, {Start: v.Now - LatestPast - 1}} },
		"windows[0].end":            func(w *Wish) { w.Windows = []span.Span{{Start: v.Now + 9, End: v.Now + 9}} },
		"alternatives":              func(w *Wish) { w.Alternatives = make([]reservation.Terms, MostOfferAlternatives+1) },
		"alternatives[1].kind":      func(w *Wish) { w.Alternatives = []reservation.Terms{{}, {Kind: "address"}} },
		"alternatives[0].resources": func(w *Wish) { w.Alternatives = []reservation.Terms{{Kind: reservation.Instances}} },
		"name":                      func(w *Wish) { w.Name = strings.Repeat("n", LongestName+1) },
		"alternatives[1].host_properties": func(w *Wish) {
			w.Alternatives = []reservation.Terms{{}, {HostProperties: `["=", 1]`}}
		},
	} {
		wrong := right
		alter(&wrong)
		if _, _, err := Offers(v, wrong); !fault.Is(err, fault.Invalid) || fault.Of(err).Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, _, err := Offers(v, right); err != nil {
		t.Error(err)
	}
}
