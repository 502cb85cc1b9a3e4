// SPDX-License-Identifier: Apache-2.0

package object_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova/object"
)

var narrowing = object.Narrowing{
	Aggregates:          [][]string{{"agg-a", "agg-b"}, {"agg-c"}},
	ForbiddenAggregates: []string{"agg-x", "agg-y"},
	IgnoreHosts:         []string{"cmp-001", "cmp-009"},
	ExtraSpecs:          map[string]string{"trait:CUSTOM_ALMANAC": "required"},
}

func TestNarrowingAddsToWhatARequestAsksFor(t *testing.T) {
	for _, name := range []string{"", "az-", "cold-migrate-", "forced-host-", "rebuild-"} {
		spec := specOf(t, name)
		narrowed, err := read(t, spec).Narrow(narrowing)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want, _ := request(t, spec, object.Options{})
		want.MemberOf, want.NotMemberOf = narrowing.Aggregates, narrowing.ForbiddenAggregates
		want.ExtraSpecs, want.Required = narrowing.ExtraSpecs, []string{"CUSTOM_ALMANAC"}
		if len(want.IgnoreHosts) == 0 {
			want.IgnoreHosts = []string{"cmp-001"}
		}
		want.IgnoreHosts = append(want.IgnoreHosts, "cmp-009")
		got, _ := request(t, narrowed, object.Options{})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNarrowingLeavesAllElseAsItCame(t *testing.T) {
	for _, name := range captured(t, "select_destinations-*request") {
		spec := specOf(t, name[len("select_destinations-"):len(name)-len("request")])
		same, err := read(t, spec).Narrow(object.Narrowing{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decode(t, spec), decode(t, same)); diff != "" {
			t.Errorf("%s, narrowed by nothing (-want +got):\n%s", name, diff)
		}
		narrowed, err := read(t, spec).Narrow(narrowing)
		if err != nil {
			t.Fatal(err)
		}
		want, got := decode(t, spec).(map[string]any), decode(t, narrowed).(map[string]any)
		for _, spec := range []map[string]any{want, got} {
			delete(data(t, spec, ""), "ignore_hosts")
			delete(data(t, spec, "flavor"), "extra_specs")
			if data(t, want, "")["requested_destination"] == nil {
				delete(data(t, spec, ""), "requested_destination")
				continue
			}
			delete(data(t, spec, "requested_destination"), "aggregates")
			delete(data(t, spec, "requested_destination"), "forbidden_aggregates")
		}
		if _, has := data(t, want, "")["requested_destination"]; !has {
			delete(data(t, got, ""), "requested_destination")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestNarrowingDoesNotChangeTheSpecItself(t *testing.T) {
	raw := specOf(t, "cold-migrate-")
	spec := read(t, raw)
	if _, err := spec.Narrow(narrowing); err != nil {
		t.Fatal(err)
	}
	again, err := spec.Narrow(object.Narrowing{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, raw), decode(t, again)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNarrowingTwiceIsNarrowingOnce(t *testing.T) {
	once, err := read(t, specOf(t, "cold-migrate-")).Narrow(narrowing)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := read(t, once).Narrow(narrowing)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(once), string(twice)); diff != "" {
		t.Errorf("(-once +twice):\n%s", diff)
	}
}

// A new Destination is what nova.objects.Destination().require_aggregates makes.
func TestANewDestinationSaysNoMoreThanItMust(t *testing.T) {
	narrowed, err := read(t, specOf(t, "az-")).Narrow(object.Narrowing{Aggregates: [][]string{{"a", "b"}}})
	if err != nil {
		t.Fatal(err)
	}
	want := novaObject("Destination", "1.4", map[string]any{"aggregates": []any{"a,b"}})
	want["nova_object.changes"] = []any{"aggregates"}
	got := data(t, decode(t, narrowed).(map[string]any), "")["requested_destination"]
	if diff := cmp.Diff(any(want), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWhatCannotBeNarrowedIsRefused(t *testing.T) {
	for rule, tc := range map[string]struct {
		values map[string]any
		kind   fault.Kind
	}{
		"the flavor says otherwise":       {map[string]any{"flavor.extra_specs": map[string]string{"trait:CUSTOM_ALMANAC": "forbidden"}}, fault.Conflict},
		"the hosts to ignore are no list": {map[string]any{"ignore_hosts": "h"}, fault.Invalid},
		"the destination is no object":    {map[string]any{"requested_destination": "h"}, fault.Invalid},
		"there is no flavor":              {map[string]any{"flavor": nil}, fault.Invalid},
	} {
		if _, err := read(t, edited(t, tc.values)).Narrow(narrowing); !fault.Is(err, tc.kind) {
			t.Errorf("%s: got %v", rule, err)
		}
	}
	if _, err := (object.RequestSpec{}).Narrow(narrowing); !fault.Is(err, fault.Invalid) {
		t.Errorf("no spec: got %v", err)
	}
}

func TestAnExtraSpecThatTheFlavorHasAlreadyMayBeAdded(t *testing.T) {
	raw := edited(t, map[string]any{"flavor.extra_specs": map[string]string{"trait:CUSTOM_ALMANAC": "required", "a": "b"}})
	narrowed, err := read(t, raw).Narrow(object.Narrowing{ExtraSpecs: narrowing.ExtraSpecs})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decode(t, raw), decode(t, narrowed)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestARequestIsNarrowedToOneHost(t *testing.T) {
	for _, name := range []string{"", "az-"} {
		narrowed, err := read(t, specOf(t, name)).Narrow(object.Narrowing{Host: "cmp-003"})
		if err != nil {
			t.Fatal(err)
		}
		got, _ := request(t, narrowed, object.Options{})
		if got.Host != "cmp-003" || got.Node != "" {
			t.Errorf("%q asks for host %q, node %q", name, got.Host, got.Node)
		}
	}
}

func TestPrivateHintsOfNovaArePassedOnWithAForcedHostOnly(t *testing.T) {
	for name, tc := range map[string]struct {
		values map[string]any
		want   map[string][]string
	}{
		"of a tenant": {
			map[string]any{"scheduler_hints": map[string]any{"_nova_note": []string{"x"}, "_nova": []string{"x"}, "group": []string{"g"}}},
			map[string][]string{"group": {"g"}},
		},
		"alone":        {map[string]any{"scheduler_hints": map[string]any{"_nova_note": []string{"x"}}}, map[string][]string{}},
		"in no list":   {map[string]any{"scheduler_hints": map[string]any{"_nova_note": "x"}}, map[string][]string{}},
		"similar ones": {map[string]any{"scheduler_hints": map[string]any{"nova_x": []string{"x"}, "x_nova": []string{"x"}}}, map[string][]string{"nova_x": {"x"}, "x_nova": {"x"}}},
		"with a forced node": {
			map[string]any{"scheduler_hints": map[string]any{"_nova_note": []string{"x"}}, "force_nodes": []string{"cmp-001"}},
			map[string][]string{},
		},
		"with a forced host": {
			map[string]any{"scheduler_hints": map[string]any{"_nova_check_type": []string{"rebuild"}}, "force_hosts": []string{"cmp-001"}},
			map[string][]string{"_nova_check_type": {"rebuild"}},
		},
		"no hints": {map[string]any{"scheduler_hints": nil}, nil},
	} {
		narrowed, err := read(t, edited(t, tc.values)).Narrow(object.Narrowing{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, _ := request(t, narrowed, object.Options{})
		if diff := cmp.Diff(tc.want, got.Hints); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, err := read(t, edited(t, map[string]any{"force_hosts": "cmp-001"})).Narrow(object.Narrowing{}); !fault.Is(err, fault.Invalid) {
		t.Errorf("forced hosts that are no list: got %v", err)
	}
}
