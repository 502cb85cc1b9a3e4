// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

func classOf(id string) string { return "CUSTOM_" + strings.ToUpper(id) }

// sliced returns the promises of a reservation of three instances, two on a and one on b.
// A slice is 2 vCPUs and 1000 MB.
func sliced() promised {
	r := reservation.Reservation{
		ID: "r1", ProjectID: "demo", Status: reservation.Active, Span: held,
		Terms: reservation.Terms{Kind: reservation.Instances, Quantity: 3, Resources: resource.Vector{VCPUs: 2, MemoryMB: 1000}},
		Claims: []reservation.Claim{
			{Host: "a", Span: held, Slices: 1}, {Host: "b", Span: held, Slices: 1}, {Host: "a", Span: held, Slices: 1},
			{Host: "c", Span: span.Span{Start: 100, End: 120}, Slices: 1}, // released early
		},
	}
	return promised{reservations: map[string]reservation.Reservation{"r1": r}, claims: map[string]span.Span{"a": held, "b": held}}
}

func TestTheSlicesOfAReservationAreCountedDown(t *testing.T) {
	own := func(ids ...string) (list []inventory.Instance) {
		for _, id := range ids {
			list = append(list, inventory.Instance{ID: id, Flavor: inventory.Flavor{ExtraSpecs: mark("r1")}})
		}
		return list
	}
	rooms := func(used int64) map[string]inventory.Stock {
		return map[string]inventory.Stock{classOf("r1"): {Total: 2, Ratio: 1, Used: used}}
	}
	hinted := inventory.Instance{ID: "i7", Reservation: "r1"}
	other := inventory.Instance{ID: "i8", Reservation: "r2"}
	liar := inventory.Instance{ID: "i9", Hints: hint("r1")}
	for name, tc := range map[string]struct {
		a, b     []inventory.Instance
		room     map[string]inventory.Stock // on a
		requests []string
		want     string
		why      string // reason for a
	}{
		"none is filled":               {nil, nil, nil, []string{"n1"}, "a,b", ""},
		"none, and all are wanted":     {nil, nil, nil, []string{"n1", "n2", "n3"}, "a,b", ""},
		"one of two":                   {own("i1"), nil, nil, []string{"n1"}, "a,b", ""},
		"all on a host":                {own("i1", "i2"), nil, nil, []string{"n1"}, "b", "on the host are in use"},
		"one by its hint":              {append(own("i1"), hinted), nil, nil, []string{"n1"}, "b", "on the host are in use"},
		"one that was not let in":      {append(own("i1"), liar), nil, nil, []string{"n1"}, "a,b", ""},
		"another reservation's":        {append(own("i1"), other), nil, nil, []string{"n1"}, "a,b", ""},
		"what Placement has given":     {nil, nil, rooms(2), []string{"n1"}, "b", "on the host are in use"},
		"the same twice":               {own("i1"), nil, rooms(1), []string{"n1"}, "a,b", ""},
		"all":                          {own("i1", "i2"), own("i3"), nil, []string{"n1"}, "", "has room for 0 more instances, 1 are requested"},
		"fewer than are wanted":        {own("i1"), own("i3"), nil, []string{"n1", "n2"}, "", "room for 1 more instances, 2 are requested"},
		"more than it holds":           {nil, nil, nil, []string{"n1", "n2", "n3", "n4"}, "", "has 3 instances, 4 are requested"},
		"the instance is there itself": {own("i1", "n1"), nil, rooms(2), []string{"n1"}, "a,b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := states(t, []inventory.HostState{{Name: "a", Instances: tc.a, Stocks: tc.room}, {Name: "b", Instances: tc.b}, {Name: "c"}})
			f := filters.Reservation{Promises: sliced(), Class: classOf}
			r := placing.Request{ProjectID: "demo", Hints: hint("r1"), Instances: tc.requests, Resources: map[string]int64{"VCPU": 2, "MEMORY_MB": 900, classOf("r1"): 1}}
			got, why := left(t, f, s, r, 150)
			if got != tc.want || !strings.Contains(why["a"], tc.why) {
				t.Errorf("%q pass, want %q; the reason for a is %q, want %q", got, tc.want, why["a"], tc.why)
			}
			if tc.want != "" && !strings.Contains(why["c"], "not one of reservation r1") {
				t.Errorf("the reason for the released host is %q", why["c"])
			}
			// Requests without the hint get none of the reserved hosts' remaining room.
			if got, _ := left(t, f, s, placing.Request{ProjectID: "demo", Instances: tc.requests}, 150); got != "c" {
				t.Errorf("without the hint %q pass, want c", got)
			}
		})
	}
}

func TestAnInstanceIsNoLargerThanTheSlice(t *testing.T) {
	for name, tc := range map[string]struct {
		takes map[string]int64
		want  string
	}{
		"as large":             {map[string]int64{"VCPU": 2, "MEMORY_MB": 1000}, ""},
		"smaller":              {map[string]int64{"VCPU": 1}, ""},
		"pinned":               {map[string]int64{"PCPU": 2}, ""},
		"its own class":        {map[string]int64{classOf("r1"): 1}, ""},
		"its own class, twice": {map[string]int64{classOf("r1"): 2}, "has 1 CUSTOM_R1 for each instance, the flavor needs 2"},
		"more vCPUs":           {map[string]int64{"VCPU": 3}, "has 2 VCPU for each instance, the flavor needs 3"},
		"more, pinned and not": {map[string]int64{"VCPU": 1, "PCPU": 2}, "needs 3"},
		"what it has none of":  {map[string]int64{"DISK_GB": 1}, "has 0 DISK_GB"},
		"another's class":      {map[string]int64{classOf("r2"): 1}, "has 0 CUSTOM_R2"},
	} {
		r := &placing.Request{ProjectID: "demo", Hints: hint("r1"), Instances: []string{"n1"}, Resources: tc.takes}
		_, why := filters.Reservation{Promises: sliced(), Class: classOf}.Resolve(r, 150)
		if (why == "") != (tc.want == "") || !strings.Contains(why, tc.want) {
			t.Errorf("%s: %q, want a reason with %q", name, why, tc.want)
		}
	}
}

// For reservations of hosts, the filter decides for all hosts at once as it decides for
// one host by name.
func TestHostsAreJudgedAlikeByNameAndByColumn(t *testing.T) {
	names := []string{"a", "b", "c", "d", "e"}
	instant := rapid.Map(rapid.Int64Range(0, 60), func(n int64) span.Instant { return span.Instant(n) })
	rapid.Check(t, func(t *rapid.T) {
		p := promised{reservations: map[string]reservation.Reservation{}, claims: map[string]span.Span{}}
		r1 := reservation.Reservation{ID: "r1", ProjectID: "demo", Span: span.New(instant.Draw(t, "start"), 30),
			Status: rapid.SampledFrom(reservation.Statuses).Draw(t, "status")}
		for _, host := range append(names, "gone") {
			claim := span.New(instant.Draw(t, "start"), rapid.Int64Range(1, 30).Draw(t, "seconds"))
			if rapid.Bool().Draw(t, "is promised") {
				p.claims[host] = claim
			}
			if rapid.Bool().Draw(t, "is reserved") {
				r1.Claims = append(r1.Claims, reservation.Claim{Host: host, Span: claim})
			}
			if rapid.IntRange(0, 5).Draw(t, "is overdue") == 0 {
				p.overdue = append(p.overdue, host)
			}
		}
		p.reservations["r1"] = r1
		rows := make([]inventory.HostState, len(names))
		for n, name := range names {
			rows[n].Name = name
		}
		s, err := inventory.NewStates(rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		f := filters.Reservation{Promises: p, Fence: rapid.SampledFrom([]filters.Fence{filters.FenceAlways, filters.FenceLeadTime}).Draw(t, "fence"),
			LeadTime: rapid.Int64Range(0, 20).Draw(t, "lead time"), Eviction: rapid.Int64Range(0, 20).Draw(t, "eviction")}
		req := placing.Request{ProjectID: rapid.SampledFrom([]string{"demo", "lab"}).Draw(t, "project"), Preemptible: rapid.Bool().Draw(t, "preemptible"),
			Hints: rapid.SampledFrom([]map[string][]string{nil, nil, hint("r1"), hint("r2")}).Draw(t, "hint")}
		now := instant.Draw(t, "now")
		hosts, judge := s.All().Clone(), f.Judge(req, now)
		test := f.For(s, &req, now)
		if test != nil {
			test.Keep(hosts)
		}
		for i, name := range names {
			var got placing.Verdict
			if !hosts.Has(i) {
				got = placing.Refuse(test.Why(i))
			}
			if diff := cmp.Diff(judge(name), got); diff != "" {
				t.Fatalf("%s, by name (-) and by column (+):\n%s", name, diff)
			}
		}
	})
}
