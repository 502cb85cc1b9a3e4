// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Offers whose search has ended early can be booked, and say that better ones may exist.
func TestWhatOffersCostIsBounded(t *testing.T) {
	for name, rule := range map[string]reservation.Together{
		"anywhere": {}, "same": {By: "rack", Rule: reservation.TogetherSame}, "spread": {By: "rack", Rule: reservation.TogetherSpread, Values: 8},
	} {
		t.Run(name, func(t *testing.T) { checkCostOfOffers(t, rule) })
	}
}

func checkCostOfOffers(t *testing.T, rule reservation.Together) {
	v, req := crowded(t)
	w := Wish{Name: "w", Quantity: Range{8, 450}, Duration: Range{60, int64(req.End - v.Now)}, Windows: []span.Span{{End: req.End}}}
	for i := range MostOfferAlternatives {
		a := reservation.Terms{Kind: reservation.Instances, Resources: req.Members[i].Resources, Together: rule}
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
		if rule.Rule != "" { // three searches for each, and the order of the hosts of each value
			always += len(w.Alternatives) * (1 + 2*(1+6)*slicesCost + 1 + 6) * len(v.Hosts.names)
		}
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

// The longest time of all is offered from the first start that has it, whichever value has it there.
func TestTheLongestOfferOnOneValueBeginsAsSoonAsItCan(t *testing.T) {
	var hosts []inventory.Host
	var held []Hold
	free := []span.Span{span.New(2000, 100), span.New(1500, 100), span.New(1000, 50)}
	for i, f := range free {
		name := fmt.Sprintf("h%d", i)
		rack := map[string]inventory.Value{"rack": inventory.StringValue(name)}
		hosts = append(hosts, inventory.Host{Name: name, Capacity: resource.Vector{VCPUs: 4}, Reservable: true, Power: inventory.PowerOn, Properties: rack})
		if f.Start > 1000 {
			held = append(held, Hold{Host: name, Span: span.Span{Start: 1000, End: f.Start}})
		}
		held = append(held, Hold{Host: name, Span: span.Span{Start: f.End, End: 5000}})
	}
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewView(1000, s, held)
	if err != nil {
		t.Fatal(err)
	}
	offers, complete, err := Offers(v, Wish{
		Name: "w", Quantity: Range{1, 1}, Duration: Range{10, 900}, Windows: []span.Span{{End: 4000}},
		Alternatives: []reservation.Terms{{Together: reservation.Together{By: "rack", Rule: reservation.TogetherSame}}},
	})
	if err != nil || !complete || len(offers) != 2 || offers[0].Span != free[1] || offers[1].Span != free[2] {
		t.Errorf("%v, complete: %v, %v", offers, complete, err)
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
		"quantity.min (values)": func(w *Wish) {
			w.Alternatives = []reservation.Terms{{Together: reservation.Together{By: "rack", Rule: reservation.TogetherSpread, Values: 2}}}
		},
		"alternatives[0].together.by": func(w *Wish) {
			w.Alternatives = []reservation.Terms{{Together: reservation.Together{By: "wrack", Rule: reservation.TogetherSame}}}
		},
		"name": func(w *Wish) { w.Name = strings.Repeat("n", LongestName+1) },
		"alternatives[1].host_properties": func(w *Wish) {
			w.Alternatives = []reservation.Terms{{}, {HostProperties: `["=", 1]`}}
		},
	} {
		wrong := right
		alter(&wrong)
		if _, _, err := Offers(v, wrong); !fault.Is(err, fault.Invalid) || fault.Of(err).Field != strings.TrimSuffix(field, " (values)") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, _, err := Offers(v, right); err != nil {
		t.Error(err)
	}
}
