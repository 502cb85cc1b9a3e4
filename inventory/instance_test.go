// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
)

func TestOneSignMakesAnInstancePreemptible(t *testing.T) {
	rule := inventory.PreemptibleRule{ExtraSpec: "almanac:preemptible", Hint: "preemptible", Projects: []string{"backfill", "spot"}}
	spec := func(word string) inventory.Instance {
		return inventory.Instance{Flavor: inventory.Flavor{ExtraSpecs: map[string]string{"almanac:preemptible": word}}}
	}
	hint := func(words ...string) inventory.Instance {
		return inventory.Instance{Hints: map[string][]string{"preemptible": words}}
	}
	for name, tc := range map[string]struct {
		rule     inventory.PreemptibleRule
		instance inventory.Instance
		want     bool
	}{
		"no sign":                 {rule, inventory.Instance{ProjectID: "demo"}, false},
		"extra spec":              {rule, spec("true"), true},
		"extra spec that says no": {rule, spec("false"), false},
		"another extra spec":      {rule, inventory.Instance{Flavor: inventory.Flavor{ExtraSpecs: map[string]string{"preemptible": "true"}}}, false},
		"hint":                    {rule, hint("true"), true},
		"hint that says no":       {rule, hint("no"), false},
		"hint without a word":     {rule, hint(), false},
		"one of several words":    {rule, hint("no", "yes"), true},
		"metadata is no sign":     {rule, inventory.Instance{Metadata: map[string]string{"preemptible": "true", "almanac:preemptible": "true"}}, false},
		"project":                 {rule, inventory.Instance{ProjectID: "spot"}, true},
		"said no, project":        {rule, inventory.Instance{ProjectID: "spot", Hints: map[string][]string{"preemptible": {"false"}}}, true},
		"no rule, no project":     {inventory.PreemptibleRule{}, inventory.Instance{}, false},
		"a rule without an extra spec": {
			inventory.PreemptibleRule{}, inventory.Instance{Flavor: inventory.Flavor{ExtraSpecs: map[string]string{"": "true"}}}, false,
		},
		"a rule without a hint": {inventory.PreemptibleRule{}, inventory.Instance{Hints: map[string][]string{"": {"true"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.rule.Marks(&tc.instance); got != tc.want {
				t.Errorf("preemptible: %v, want %v", got, tc.want)
			}
		})
	}
}

// The accepted words are those of bool_from_string in oslo_utils/strutils.py.
func TestASignIsReadAsOsloReadsIt(t *testing.T) {
	rule := inventory.PreemptibleRule{Hint: "preemptible"}
	for word, want := range map[string]bool{
		"1": true, "t": true, "true": true, "on": true, "y": true, "yes": true,
		"True": true, "YES": true, " true\t": true,
		"0": false, "f": false, "false": false, "off": false, "n": false, "no": false,
		"": false, "2": false, "truely": false, "enabled": false, "t rue": false,
	} {
		i := inventory.Instance{Hints: map[string][]string{"preemptible": {word}}}
		if got := rule.Marks(&i); got != want {
			t.Errorf("%q is read as %v", word, got)
		}
	}
}

func TestAnInstanceBelongsToTheReservationOfItsFlavor(t *testing.T) {
	i := inventory.Instance{Metadata: map[string]string{"almanac:reservation": "metadata is the user's"}}
	if got := i.ReservationID(); got != "" {
		t.Errorf("without a mark it belongs to %q", got)
	}
	i.Flavor.ExtraSpecs = map[string]string{"almanac:reservation": "r-1"}
	if got := i.ReservationID(); got != "r-1" {
		t.Errorf("it belongs to %q, want r-1", got)
	}
}

func TestWhatIsMarkedOrCannotLeaveIsProtected(t *testing.T) {
	rule := inventory.PreemptibleRule{Protect: "keep", Leaves: []string{"ACTIVE", "SHUTOFF"}}
	for name, tc := range map[string]struct {
		instance inventory.Instance
		want     bool
	}{
		"nothing speaks for it":    {inventory.Instance{Status: "ACTIVE"}, false},
		"its metadata says so":     {inventory.Instance{Status: "ACTIVE", Metadata: map[string]string{"keep": "Yes"}}, true},
		"its metadata denies it":   {inventory.Instance{Status: "ACTIVE", Metadata: map[string]string{"keep": "no"}}, false},
		"it cannot leave as it is": {inventory.Instance{Status: "ERROR"}, true},
	} {
		if got := rule.Protects(&tc.instance); got != tc.want {
			t.Errorf("%s: protected %v, want %v", name, got, tc.want)
		}
	}
	if all := (inventory.PreemptibleRule{}); all.Protects(&inventory.Instance{Status: "ERROR", Metadata: map[string]string{"": "true"}}) {
		t.Error("an empty rule protects instances")
	}
}
