// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// naive maps each filter to a rule that decides for one host, from rows and lists alone.
var naive = map[string]func(h *inventory.HostState, in []inventory.Aggregate, all []inventory.Aggregate, r *placing.Request) bool{
	"CapacityFilter": func(h *inventory.HostState, _, _ []inventory.Aggregate, r *placing.Request) bool {
		for class, n := range r.Resources {
			s, has := h.Stocks[class]
			if n != 0 && (!has || n < s.Min || s.Max > 0 && n > s.Max || n%max(s.Step, 1) != 0 || float64(s.Total-s.Reserved)*s.Ratio < float64(s.Used+n)) {
				return false
			}
		}
		return true
	},
	"TraitFilter": func(h *inventory.HostState, _, _ []inventory.Aggregate, r *placing.Request) bool {
		has := func(trait string) bool { return slices.Contains(h.Traits, trait) }
		for _, any := range r.AnyOf {
			if !slices.ContainsFunc(any, has) {
				return false
			}
		}
		return !has("COMPUTE_STATUS_DISABLED") && !slices.ContainsFunc(r.Forbidden, has) &&
			!slices.ContainsFunc(r.Required, func(trait string) bool { return !has(trait) })
	},
	"AggregateFilter": func(_ *inventory.HostState, in, _ []inventory.Aggregate, r *placing.Request) bool {
		member := func(uuid string) bool {
			return slices.ContainsFunc(in, func(a inventory.Aggregate) bool { return a.UUID == uuid })
		}
		for _, any := range r.MemberOf {
			if !slices.ContainsFunc(any, member) {
				return false
			}
		}
		return !slices.ContainsFunc(r.NotMemberOf, member)
	},
	"IsolatedAggregateFilter": func(_ *inventory.HostState, in, _ []inventory.Aggregate, r *placing.Request) bool {
		for _, a := range in {
			for key, value := range a.Metadata {
				if trait, is := strings.CutPrefix(key, "trait:"); is && value == "required" && !slices.Contains(r.Required, trait) {
					return false
				}
			}
		}
		return true
	},
	"TenantAggregateFilter": func(_ *inventory.HostState, in, all []inventory.Aggregate, r *placing.Request) bool {
		named := func(a inventory.Aggregate) bool { return a.Metadata["filter_tenant_id_x"] == r.ProjectID }
		return slices.ContainsFunc(in, named) || !slices.ContainsFunc(all, named)
	},
	"ZoneFilter": func(_ *inventory.HostState, in, all []inventory.Aggregate, r *placing.Request) bool {
		is := func(a inventory.Aggregate) bool { return a.Zone == r.Zone }
		return r.Zone == "" || r.Zone == "nova" || slices.ContainsFunc(in, is)
	},
	"ComputeFilter": func(h *inventory.HostState, _, _ []inventory.Aggregate, r *placing.Request) bool {
		return h.Up && h.Enabled || len(r.ForceHosts) > 0
	},
	"DestinationFilter": func(h *inventory.HostState, _, _ []inventory.Aggregate, r *placing.Request) bool {
		return (r.Host == "" || r.Host == h.Name) && (r.Cell == "" || r.Cell == h.Cell) && !slices.Contains(r.IgnoreHosts, h.Name) &&
			(len(r.ForceHosts) == 0 || slices.Contains(r.ForceHosts, h.Name))
	},
	"JudgeableFilter": func(h *inventory.HostState, _, _ []inventory.Aggregate, _ *placing.Request) bool {
		return h.Unsupported == ""
	},
}

// A filter decides for all hosts at once as a plain rule decides for one host. There are
// more hosts than a word of a set has bits.
func TestColumnsAnswerAsRowsDo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pick := func(label string, from ...string) string { return rapid.SampledFrom(from).Draw(t, label) }
		some := func(label string, from ...string) []string {
			return rapid.SliceOfNDistinct(rapid.SampledFrom(from), 0, 2, rapid.ID).Draw(t, label)
		}
		number := func(label string, from ...int64) int64 { return rapid.SampledFrom(from).Draw(t, label) }
		kinds := make([]inventory.HostState, rapid.IntRange(1, 6).Draw(t, "kinds of hosts"))
		for n := range kinds {
			kinds[n] = inventory.HostState{
				Cell: pick("cell", "", "c1", "c2"), Up: rapid.Bool().Draw(t, "up"), Enabled: rapid.Bool().Draw(t, "enabled"),
				Traits: some("traits", "T1", "T2", "T3", "COMPUTE_STATUS_DISABLED"), Unsupported: pick("beyond", "", "", "much"), Stocks: map[string]inventory.Stock{},
			}
			for _, class := range some("classes", "VCPU", "MEMORY_MB", "CUSTOM_X") {
				kinds[n].Stocks[class] = inventory.Stock{
					Total: number("total", 0, 4, 10), Reserved: number("reserved", 0, 1), Ratio: rapid.SampledFrom([]float64{0.5, 1, 1.25, 16}).Draw(t, "ratio"),
					Used: number("used", 0, 3, 12), Min: number("min", 1, 2), Max: number("max", 0, 3, 8), Step: number("step", 0, 1, 2),
				}
			}
		}
		rows := make([]inventory.HostState, rapid.IntRange(1, 140).Draw(t, "hosts"))
		aggregates := make([]inventory.Aggregate, rapid.IntRange(0, 4).Draw(t, "aggregates"))
		for n := range aggregates {
			aggregates[n] = inventory.Aggregate{UUID: fmt.Sprint("u", n), Zone: pick("zone", "", "az1", "az2"), Metadata: map[string]string{
				pick("key", "trait:T1", "trait:T2", "filter_tenant_id_x", "other"): pick("value", "required", "p1", "p2"),
			}}
		}
		for n := range rows {
			rows[n] = kinds[n*7%len(kinds)]
			rows[n].Name = fmt.Sprintf("h%03d", n)
			for a := range aggregates {
				if (n*13+a*5)%7 < 3 {
					aggregates[a].Hosts = append(aggregates[a].Hosts, rows[n].Name)
				}
			}
		}
		r := placing.Request{
			ProjectID: pick("project", "p1", "p2", "p3"), Zone: pick("zone", "", "nova", "az1", "az3"), Host: pick("host", "", "", "h000", "h100", "x"),
			Cell: pick("cell", "", "c1"), IgnoreHosts: some("ignored", "h000", "h001", "x"), ForceHosts: some("forced", "h000", "h002", "h080"),
			Required: some("required", "T1", "T2"), Forbidden: some("forbidden", "T3", "T4"), NotMemberOf: some("not member of", "u0", "u9"),
			Resources: map[string]int64{pick("class", "VCPU", "MEMORY_MB", "CUSTOM_X"): number("amount", 0, 1, 2, 3, 5), "VCPU": number("amount", 0, 1, 4)},
		}
		if rapid.Bool().Draw(t, "any of") {
			r.AnyOf, r.MemberOf = [][]string{some("any of", "T1", "T3")}, [][]string{some("member of", "u0", "u1", "u9")}
		}
		s, err := inventory.NewStates(rows, aggregates)
		if err != nil {
			t.Fatal(err)
		}
		list, err := filters.New([]string{"ComputeFilter"}, filters.Options{
			DefaultAvailabilityZone: "nova", EnableIsolatedAggregateFiltering: true, LimitTenantsToPlacementAggregate: true, Reservation: filters.Reservation{Promises: promised{}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range list {
			rule, hosts := naive[f.Name()], s.All().Clone()
			if rule == nil {
				continue // the reservation filter has its own test
			}
			test := f.For(s, &r, 0)
			if test != nil {
				test.Keep(hosts)
			}
			for i := range s.Len() {
				var in []inventory.Aggregate
				for a := range s.AggregatesOf(i) {
					in = append(in, *a)
				}
				if want := rule(s.Host(i), in, aggregates, &r); hosts.Has(i) != want {
					t.Fatalf("%s lets %s pass: %v, want %v", f.Name(), s.Host(i).Name, !want, want)
				}
				if !hosts.Has(i) && test.Why(i) == "" {
					t.Fatalf("%s refuses %s without a reason", f.Name(), s.Host(i).Name)
				}
			}
			if hosts.Count() > s.Len() {
				t.Fatalf("%s leaves %d of %d hosts", f.Name(), hosts.Count(), s.Len())
			}
		}
	})
}
