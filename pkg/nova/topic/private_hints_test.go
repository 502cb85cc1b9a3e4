// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// The hints whose names begin with _nova are those of Nova's services. Beside their removal, the ignored
// hosts of the request keep others' hosts out, whatever nova-scheduler asks of Placement.
func TestATenantsPrivateHintsAreRemovedAndOthersHostsAreIgnored(t *testing.T) {
	private := map[string][]string{"_nova_note": {"x"}}
	inside := map[string][]string{"_nova_note": {"x"}, placing.ReservationHint: {"own"}}
	numa := map[string]string{"hw:numa_nodes": "2"} // requests that replace passes on
	for name, tc := range map[string]struct {
		hints      map[string][]string
		extraSpecs map[string]string
		placer     topic.Placer
	}{
		"interpose, no reservation":  {hints: private},
		"interpose, own reservation": {hints: inside},
		"replace, no reservation":    {hints: private, extraSpecs: numa, placer: placer{}},
		"replace, own reservation":   {hints: inside, extraSpecs: numa, placer: placer{}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := passedOn(t, topic.Options{Placer: tc.placer}, args(t, fields{"scheduler_hints": tc.hints}, tc.extraSpecs))
			want := map[string][]string{}
			if id, there := tc.hints[placing.ReservationHint]; there {
				want[placing.ReservationHint] = id
			}
			if diff := cmp.Diff(want, read(t, spec).Hints); diff != "" {
				t.Errorf("the hints that are passed on (-want +got):\n%s", diff)
			}
			ignored := narrowing(t, spec).Ignored
			for _, foreign := range []string{"cmp-003", "cmp-004", "cmp-005", "cmp-006"} {
				if !slices.Contains(ignored, foreign) {
					t.Errorf("nova-scheduler may choose %s, which another reservation has", foreign)
				}
			}
		})
	}
}

func TestARebuildOfNovaIsPassedOnAsOne(t *testing.T) {
	for _, m := range captured(t, "select_destinations-rebuild-request") {
		var sent map[string]any
		if err := json.Unmarshal(m.Args, &sent); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(sent["spec_obj"])
		if err != nil {
			t.Fatal(err)
		}
		want, got := read(t, raw), read(t, passedOn(t, topic.Options{}, sent))
		if diff := cmp.Diff(want, got); diff != "" || !got.Rebuild {
			t.Errorf("a rebuild: %t, changed (-want +got):\n%s", got.Rebuild, diff)
		}
	}
}

// passedOn returns the RequestSpec that nova-scheduler receives for a request.
func passedOn(t *testing.T, o topic.Options, asked map[string]any) json.RawMessage {
	t.Helper()
	stock := &behind{answer: func(json.RawMessage) (json.RawMessage, error) {
		return nil, &oslo.RemoteError{Class: "NoValidHost", Module: novaException, Message: "No valid host was found. "}
	}}
	o.Behind = stock
	_, err := serve(t, o).ask(t, asked)
	checkRefusal(t, err, "NoValidHost", novaException, "")
	if len(stock.specs) != 1 {
		t.Fatalf("%d requests are passed on, want 1", len(stock.specs))
	}
	return stock.specs[0]
}
