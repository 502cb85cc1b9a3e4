// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

// capable returns the override of a host that has a text for the property x.
func capable(text string) inventory.Override {
	return inventory.Override{Capabilities: &inventory.Capabilities{Texts: map[string]string{"x": text}}}
}

func TestTextsBecomeTheTypeThatAllHostsShare(t *testing.T) {
	number, word, yes := inventory.NumberValue(7), inventory.StringValue("seven"), inventory.BoolValue(true)
	for name, tc := range map[string]struct {
		source    []inventory.Value // of the hosts a, b, …; the zero Value means none
		overrides map[string]inventory.Override
		want      []any
	}{
		"whole numbers are numbers":                 {make([]inventory.Value, 2), map[string]inventory.Override{"a": capable("4"), "b": capable("-10")}, []any{4.0, -10.0}},
		"true and false are truth values":           {make([]inventory.Value, 2), map[string]inventory.Override{"a": capable("True"), "b": capable("False")}, []any{true, false}},
		"they may be written small":                 {make([]inventory.Value, 2), map[string]inventory.Override{"a": capable("true"), "b": capable("false")}, []any{true, false}},
		"two spellings are texts":                   {make([]inventory.Value, 2), map[string]inventory.Override{"a": capable("true"), "b": capable("True")}, []any{"true", "True"}},
		"a number beside a word is a text":          {make([]inventory.Value, 3), map[string]inventory.Override{"a": capable("4"), "b": capable("big"), "c": capable("True")}, []any{"4", "big", "True"}},
		"other spellings of numbers are texts":      {make([]inventory.Value, 3), map[string]inventory.Override{"a": capable("04"), "b": capable("4.5"), "c": capable("9007199254740993")}, []any{"04", "4.5", "9007199254740993"}},
		"empty is a text":                           {make([]inventory.Value, 1), map[string]inventory.Override{"a": capable("")}, []any{""}},
		"a capability replaces what the source has": {[]inventory.Value{word, {}}, map[string]inventory.Override{"a": capable("4")}, []any{4.0, nil}},
		"the source's word makes all of them texts": {[]inventory.Value{{}, word, number}, map[string]inventory.Override{"a": capable("4")}, []any{"4", "seven", "7"}},
		"a word makes the source's values texts":    {[]inventory.Value{{}, number, yes}, map[string]inventory.Override{"a": capable("big")}, []any{"big", "7", "True"}},
		"the source's numbers stay numbers":         {[]inventory.Value{{}, number}, map[string]inventory.Override{"a": capable("4")}, []any{4.0, 7.0}},
		"a word makes what an operator set a text":  {make([]inventory.Value, 2), map[string]inventory.Override{"a": capable("big"), "b": {Properties: map[string]*inventory.Value{"x": &number}}}, []any{"big", "7"}},
		"a removed property does not count":         {[]inventory.Value{{}, word}, map[string]inventory.Override{"a": capable("4"), "b": {Properties: map[string]*inventory.Value{"x": nil}}}, []any{4.0, nil}},
		"a list of the source is left out":          {[]inventory.Value{{}, inventory.ListValue([]string{"y"})}, map[string]inventory.Override{"a": capable("4")}, []any{4.0, nil}},
		"a host that is gone does not count":        {make([]inventory.Value, 1), map[string]inventory.Override{"a": capable("4"), "gone": capable("big")}, []any{4.0}},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cloud{overrides: tc.overrides, hidden: map[string]bool{}}
			for i, value := range tc.source {
				host := inventory.Host{Name: string(rune('a' + i)), Properties: properties{}}
				if value.Kind() != "" {
					host.Properties["x"] = value
				}
				c.hosts = append(c.hosts, host)
			}
			before := fmt.Sprint(c.hosts)
			var got []any
			for _, h := range keep(t, c).Snapshot().Hosts() {
				got = append(got, h.Properties["x"].Any())
				if text, given := h.Capabilities.Texts["x"]; given && h.Text("x") != text {
					t.Errorf("the text on %s is %q, want %q as it was given", h.Name, h.Text("x"), text)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Errorf("values (-want +got):\n%s", d)
			}
			if after := fmt.Sprint(c.hosts); after != before {
				t.Errorf("the source's hosts were %s, are %s", before, after)
			}
		})
	}
}

func TestEachValueHasAText(t *testing.T) {
	for want, value := range map[string]inventory.Value{
		"1.5": inventory.NumberValue(1.5), "100000000000000000000000": inventory.NumberValue(1e23), "word": inventory.StringValue("word"),
		"True": inventory.BoolValue(true), "False": inventory.BoolValue(false), `["x","y"]`: inventory.ListValue([]string{"x", "y"}), "": {},
	} {
		if got := value.Text(); got != want {
			t.Errorf("the text of %v is %q, want %q", value.Any(), got, want)
		}
	}
}

func TestWhatWasSetLastCounts(t *testing.T) {
	c := &cloud{hosts: racked("a")} // the source says that rack is 1
	k := keep(t, c)
	rackIs := func(text string) map[string]*string { return map[string]*string{"rack": &text} }
	five := inventory.NumberValue(5)
	for _, step := range []struct {
		enroll map[string]*string
		set    map[string]*inventory.Value
		want   any
	}{
		{enroll: rackIs("4"), want: 4.0},
		{set: map[string]*inventory.Value{"rack": &five}, want: 5.0},
		{enroll: rackIs("b12"), want: "b12"},
		{enroll: map[string]*string{"rack": nil}, want: 1.0},
		{set: map[string]*inventory.Value{"rack": &five}, want: 5.0},
		{enroll: map[string]*string{"rack": nil}, want: 1.0},
		{enroll: rackIs("6"), want: 6.0},
		{set: map[string]*inventory.Value{"rack": nil}, want: nil},
		{enroll: map[string]*string{"rack": nil}, want: nil},
	} {
		var err error
		if step.enroll != nil {
			err = k.Enroll(t.Context(), "a", inventory.Enrollment{Texts: step.enroll})
		} else {
			err = k.SetHost(t.Context(), "a", inventory.Override{Properties: step.set}, nil)
		}
		if got := rack(t, k, "a"); err != nil || got != step.want {
			t.Errorf("after %+v: rack is %v, want %v: %v", step, got, step.want, err)
		}
	}
	c.hosts[0].Properties = nil
	if err := k.Enroll(t.Context(), "a", inventory.Enrollment{Texts: map[string]*string{"rack": nil}}); err != nil {
		t.Fatal(err)
	}
}

func TestAHostKnowsSinceWhenItHasCapabilities(t *testing.T) {
	w := watch(t, racked("a"))
	w.cloud.overrides = map[string]inventory.Override{}
	yes, no, text := true, false, "big"
	for _, step := range []struct {
		change  inventory.Enrollment
		want    inventory.Capabilities
		reserve bool
	}{
		{inventory.Enrollment{Reservable: &yes}, inventory.Capabilities{Texts: map[string]string{}, Created: 1010}, true},
		{inventory.Enrollment{Texts: map[string]*string{"x": &text}}, inventory.Capabilities{Texts: map[string]string{"x": "big"}, Created: 1010, Updated: 1020}, true},
		{inventory.Enrollment{Reservable: &no}, inventory.Capabilities{}, false},
		{inventory.Enrollment{Texts: map[string]*string{"x": &text}}, inventory.Capabilities{Texts: map[string]string{"x": "big"}, Created: 1040}, false},
	} {
		w.now += 10
		if err := w.Enroll(t.Context(), "a", step.change); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(step.want, w.Snapshot().Host(0).Capabilities); d != "" || w.Snapshot().Host(0).Reservable != step.reserve {
			t.Errorf("after %+v: reservable is %v, capabilities (-want +got):\n%s", step.change, w.Snapshot().Host(0).Reservable, d)
		}
	}
}

func TestWhatCannotBeACapabilityIsRefusedAndChangesNothing(t *testing.T) {
	c := &cloud{hosts: racked("a", "b")}
	c.hosts[1].Properties = properties{"networks": inventory.ListValue([]string{"x"})}
	k, text := keep(t, c), "1"
	for name, tc := range map[string]struct {
		host   string
		change inventory.Enrollment
		want   fault.Kind
	}{
		"of an unknown host":                      {"c", inventory.Enrollment{}, fault.NotFound},
		"named like a built-in":                   {"a", inventory.Enrollment{Texts: map[string]*string{"memory_mb": &text}}, fault.Invalid},
		"named like a list":                       {"a", inventory.Enrollment{Texts: map[string]*string{"networks": &text}}, fault.Invalid},
		"removed where only the inventory has it": {"a", inventory.Enrollment{Texts: map[string]*string{"rack": nil}}, fault.Conflict},
		"that the caller disallows": {"a", inventory.Enrollment{Texts: map[string]*string{"x": &text}, Allow: func(_, after *inventory.Snapshot) error {
			return fault.New(fault.Conflict, "x is %v", after.Host(0).Properties["x"].Any())
		}}, fault.Conflict},
	} {
		if err := k.Enroll(t.Context(), tc.host, tc.change); !fault.Is(err, tc.want) {
			t.Errorf("%s: %v, want kind %s", name, err, tc.want)
		}
	}
	if len(c.overrides) > 0 {
		t.Errorf("stored is %v", c.overrides)
	}
}

func TestOnlyEnrolledHostsAreReservableIfTheOptionSaysSo(t *testing.T) {
	c := &cloud{hosts: racked("a", "b"), overrides: map[string]inventory.Override{}, hidden: map[string]bool{}}
	o, yes := settings(c), true
	o.OnlyEnrolled = true
	k, err := inventory.OpenSnapshotCache(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Enroll(t.Context(), "b", inventory.Enrollment{Reservable: &yes}); err != nil {
		t.Fatal(err)
	}
	if err := k.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := k.Snapshot(); s.Host(0).Reservable || !s.Host(1).Reservable || !c.hosts[0].Reservable {
		t.Errorf("reservable are %v and %v, want only the second; the source's hosts must not change", s.Host(0).Reservable, s.Host(1).Reservable)
	}
}

// numbers counts how often it was asked, and numbers the hosts from 1.
type numbers struct {
	given map[string]int64
	asked int
	err   error
}

func (n *numbers) HostNumbers(_ context.Context, hosts []string) (map[string]int64, error) {
	n.asked++
	for _, host := range hosts {
		if n.given[host] == 0 {
			n.given[host] = int64(len(n.given) + 1)
		}
	}
	return maps.Clone(n.given), n.err
}

func TestHostsAreNumberedWhenTheyAppear(t *testing.T) {
	c := &cloud{hosts: racked("b"), overrides: map[string]inventory.Override{}, hidden: map[string]bool{}}
	o, n := settings(c), &numbers{given: map[string]int64{}}
	o.Numbers = n
	k, err := inventory.OpenSnapshotCache(t.Context(), c, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, listed := range [][]string{{"b"}, {"a", "b"}, {"a"}, {"a", "b"}} {
		c.hosts = racked(listed...)
		if err := k.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, h := range k.Snapshot().Hosts() {
		got = append(got, fmt.Sprint(h.Name, h.Number))
	}
	if !slices.Equal(got, []string{"a2", "b1"}) || n.asked != 2 {
		t.Errorf("the hosts are %v after %d questions, want a2 and b1 after 2", got, n.asked)
	}
	c.hosts, n.err = racked("a", "b", "c"), errors.New("no database")
	if err := k.Refresh(t.Context()); !errors.Is(err, n.err) || k.Snapshot().Len() != 2 {
		t.Errorf("without numbers: %v, %d hosts; want the error and the last hosts", err, k.Snapshot().Len())
	}
}
