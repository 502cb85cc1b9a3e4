// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func snapshotOf(t testing.TB, hosts ...inventory.Host) *inventory.Snapshot {
	t.Helper()
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatalf("new snapshot: %v", err)
	}
	return s
}

type properties = map[string]inventory.Value

func names(s *inventory.Snapshot) []string {
	var names []string
	for _, h := range s.Hosts() {
		names = append(names, h.Name)
	}
	return names
}

func TestHostsLieByNameAndAreFoundByIt(t *testing.T) {
	given := []inventory.Host{{Name: "c"}, {Name: "a"}, {Name: "b"}}
	s := snapshotOf(t, given...)
	if diff := cmp.Diff([]string{"a", "b", "c"}, names(s)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	if given[0].Name != "c" {
		t.Error("the caller's hosts are reordered")
	}
	for i, h := range s.Hosts() {
		if at, ok := s.Index(h.Name); !ok || at != i || s.Host(i) != h {
			t.Errorf("host %s at %d: Index returns %d, %v", h.Name, i, at, ok)
		}
	}
	if _, ok := s.Index("d"); ok {
		t.Error("an unknown host has an index")
	}
}

func TestAnOverrideWinsOverTheSource(t *testing.T) {
	yes, no := true, false
	number := inventory.NumberValue(7)
	host := inventory.Host{Name: "a", Reservable: true, Properties: properties{
		"rack": inventory.NumberValue(3), "gpu": inventory.StringValue("a100"), "nvme": inventory.BoolValue(true),
	}}
	s, err := inventory.NewSnapshot([]inventory.Host{host, {Name: "b"}, {Name: "c", Reservable: true}}, map[string]inventory.Override{
		"a":    {Properties: map[string]*inventory.Value{"rack": &number, "gpu": nil, "slot": &number}, Reservable: &no},
		"b":    {Reservable: &yes},
		"gone": {Reservable: &no},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := properties{"rack": number, "slot": number, "nvme": inventory.BoolValue(true)}
	if diff := cmp.Diff(want, s.Host(0).Properties); diff != "" {
		t.Errorf("properties (-want +got):\n%s", diff)
	}
	for i, want := range []bool{false, true, true} {
		if got := s.Host(i).Reservable; got != want {
			t.Errorf("%s reservable: got %v, want %v", s.Host(i).Name, got, want)
		}
	}
	if got := host.Properties["rack"]; !got.Equal(inventory.NumberValue(3)) {
		t.Errorf("the source's own host now has rack %v", got.Any())
	}
}

func TestASnapshotRefusesWhatNoFilterCouldMeanClearly(t *testing.T) {
	number, text := inventory.NumberValue(3), inventory.StringValue("3")
	for name, tc := range map[string]struct {
		hosts     []inventory.Host
		overrides map[string]inventory.Override
		wantField string
		wantText  string
	}{
		"two types": {
			hosts:     []inventory.Host{{Name: "b", Properties: properties{"rack": text}}, {Name: "a", Properties: properties{"rack": number}}},
			wantField: "properties.rack", wantText: "a number on a and a string on b",
		},
		"two types by an override": {
			hosts:     []inventory.Host{{Name: "a", Properties: properties{"rack": number}}, {Name: "b"}},
			overrides: map[string]inventory.Override{"b": {Properties: map[string]*inventory.Value{"rack": &text}}},
			wantField: "properties.rack", wantText: "a number on a and a string on b",
		},
		"a repeated name": {hosts: []inventory.Host{{Name: "a"}, {Name: "b"}, {Name: "a"}}, wantField: "name", wantText: `"a"`},
		"no name":         {hosts: []inventory.Host{{}}, wantField: "name", wantText: "no name"},
		"a built-in name": {hosts: []inventory.Host{{Name: "a", Properties: properties{"vcpus": number}}}, wantField: "properties.vcpus", wantText: "built in"},
		"an empty name":   {hosts: []inventory.Host{{Name: "a", Properties: properties{"": number}}}, wantField: "properties", wantText: "no name"},
		"no value":        {hosts: []inventory.Host{{Name: "a", Properties: properties{"x": {}}}}, wantField: "properties.x", wantText: "no value"},
		"not a number":    {hosts: []inventory.Host{{Name: "a", Properties: properties{"x": inventory.NumberValue(math.NaN())}}}, wantField: "properties.x", wantText: "finite"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := inventory.NewSnapshot(tc.hosts, tc.overrides, nil)
			if !fault.Is(err, fault.Invalid) {
				t.Fatalf("got %v, want an invalid fault", err)
			}
			got := fault.Of(err)
			if got.Field != tc.wantField || !strings.Contains(got.Message, tc.wantText) {
				t.Errorf("got %v, want %s: …%s…", got, tc.wantField, tc.wantText)
			}
		})
	}
}

func TestTheMostEfficientHostRanksFirstAndTheUnknownLast(t *testing.T) {
	s := snapshotOf(t,
		inventory.Host{Name: "a"},
		inventory.Host{Name: "b", FlopsPerWatt: 180},
		inventory.Host{Name: "c", FlopsPerWatt: 250},
		inventory.Host{Name: "d"},
		inventory.Host{Name: "e", FlopsPerWatt: 250},
	)
	byRank := make([]string, s.Len())
	for i, h := range s.Hosts() {
		byRank[s.EfficiencyRank(i)] = h.Name
	}
	if diff := cmp.Diff([]string{"c", "e", "b", "a", "d"}, byRank); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestAHostThatIsOffOnPurposeIsInNoTrouble(t *testing.T) {
	const down = "its nova-compute is down"
	for name, tc := range map[string]struct {
		source inventory.Power
		set    *inventory.Power
		want   string
	}{
		"on":                      {source: inventory.PowerOn, want: down},
		"asleep, says the source": {source: inventory.PowerSleeping},
		"asleep, says an admin":   {source: inventory.PowerOn, set: new(inventory.PowerSleeping)},
		"waking, says an admin":   {set: new(inventory.PowerWaking)},
		"failed, says an admin":   {set: new(inventory.PowerFailed), want: down},
		"on, says an admin":       {source: inventory.PowerSleeping, set: new(inventory.PowerOn), want: down},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := []inventory.Host{{Name: "a", Power: tc.source, Problem: down}}
			s, err := inventory.NewSnapshot(hosts, map[string]inventory.Override{"a": {Power: tc.set}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := s.Host(0).Problem; got != tc.want {
				t.Errorf("trouble is %q, want %q", got, tc.want)
			}
			if hosts[0].Problem != down {
				t.Error("the source's own host was changed")
			}
		})
	}
}
