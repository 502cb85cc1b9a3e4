// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"fmt"
	"testing"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// listed is a Promises that returns fixed claims at no cost.
type listed struct {
	claims []reservation.Claim
	r      reservation.Reservation
}

func (l listed) Reservation(string) (reservation.Reservation, bool) { return l.r, true }
func (l listed) Promised(span.Instant) []reservation.Claim          { return l.claims }

func (listed) Revision() uint64 { return 0 }

// cloud returns 10,000 hosts with five instances each. One host in ten is promised, another
// one is down, and eight aggregates are zones, isolated or for projects.
func cloud(b *testing.B) (*inventory.States, filters.Options) {
	rows := make([]inventory.HostState, 10_000)
	aggregates := make([]inventory.Aggregate, 8)
	promised := listed{r: reservation.Reservation{ID: "r1", Status: reservation.Active, Span: held, Terms: reservation.Terms{
		Kind: reservation.Instances, Quantity: 2000}}}
	for n := range aggregates {
		aggregates[n] = inventory.Aggregate{UUID: fmt.Sprint("u", n), Name: fmt.Sprint("a", n), Metadata: map[string]string{}}
	}
	for n := range 4 {
		aggregates[n].Zone = fmt.Sprint("az", n)
	}
	aggregates[4].Metadata["trait:CUSTOM_GOLD"], aggregates[5].Metadata["filter_tenant_id"] = "required", "p1"
	for _, a := range aggregates[2:] {
		a.Metadata["max_io_ops_per_host"], a.Metadata["max_instances_per_host"], a.Metadata["ssd"] = "4", "6", "true, fast"
		a.Metadata["instance_type"], a.Metadata["os_distro"] = "m1.small,m1.large", "debian,ubuntu"
	}
	for n := range rows {
		h := inventory.HostState{
			Name: fmt.Sprintf("node-%05d", n), Node: fmt.Sprintf("node-%05d.example.org", n), Zone: fmt.Sprint("az", n%4), Cell: "c1", Up: n%10 > 0, Enabled: true,
			IP: fmt.Sprintf("10.0.%d.%d", n/250, n%250), IOOps: int64(n % 5), HypervisorType: "QEMU", HypervisorVersion: 7002000, Traits: []string{"COMPUTE_NODE", "HW_CPU_X86_AVX2", "HW_CPU_X86_SSE"},
			Stocks: map[string]inventory.Stock{
				"VCPU": {Total: 64, Ratio: 4, Used: int64(n % 300)}, "MEMORY_MB": {Total: 1 << 18, Reserved: 512, Ratio: 1, Used: int64(n%300) << 10}, "DISK_GB": {Total: 4000, Ratio: 1, Used: int64(n % 4000)},
			},
		}
		for g := range 5 {
			h.Instances = append(h.Instances, inventory.Instance{ID: fmt.Sprintf("5c6e3e52-0c0c-4d0e-9a4e-%06d%06d", n, g)})
		}
		rows[n] = h
		aggregates[n%8].Hosts = append(aggregates[n%8].Hosts, h.Name)
		if n%10 == 3 {
			claim := reservation.Claim{Host: h.Name, Span: held, Slices: 2}
			promised.claims, promised.r.Claims = append(promised.claims, claim), append(promised.r.Claims, claim)
		}
	}
	return states(b, rows, aggregates...), filters.Options{
		Reservation: filters.Reservation{Promises: promised}, DefaultAvailabilityZone: "nova", MaxIOOpsPerHost: 8, MaxInstancesPerHost: 50,
		IsolatedImages: []string{"image"}, IsolatedHosts: []string{"node-00001", "node-00002"}, RestrictIsolatedHostsToIsolatedImages: true,
		EnableIsolatedAggregateFiltering: true, LimitTenantsToPlacementAggregate: true, OwnTraits: "CUSTOM_ALMANAC_",
	}
}

// BenchmarkFilter measures each filter alone, over 10,000 hosts, with a request that
// the filter has to check.
func BenchmarkFilter(b *testing.B) {
	s, options := cloud(b)
	plain := placing.Request{Instances: []string{"new"}, Resources: map[string]int64{"VCPU": 4, "MEMORY_MB": 8192, "DISK_GB": 40}, ProjectID: "p1",
		Zone: "az1", Required: []string{"HW_CPU_X86_AVX2"}, MemberOf: [][]string{{"u1", "u2"}}, IgnoreHosts: []string{"node-00001"}}
	for name, change := range map[string]func(r *placing.Request){
		"CapacityFilter": nil, "TraitFilter": nil, "AggregateFilter": nil, "IsolatedAggregateFilter": nil, "ZoneFilter": nil, "DestinationFilter": nil,
		"JudgeableFilter": nil, "ComputeFilter": nil, "AvailabilityZoneFilter": nil, "AggregateMultiTenancyIsolation": nil, "ReservationFilter": nil,
		"TenantAggregateFilter": nil, "IsolatedHostsFilter": nil, "IoOpsFilter": nil, "AggregateIoOpsFilter": nil, "NumInstancesFilter": nil,
		"AggregateNumInstancesFilter": nil,
		"AggregateTypeAffinityFilter": func(r *placing.Request) { r.FlavorName = "m1.large" },
		"AggregateInstanceExtraSpecsFilter": func(r *placing.Request) {
			r.ExtraSpecs = map[string]string{"ssd": "<or> fast <or> true", "aggregate_instance_extra_specs:os_distro": "debian"}
		},
		"AggregateImagePropertiesIsolation": func(r *placing.Request) { r.ImageProperties = map[string]string{"os_distro": "debian"} },
		"SameHostFilter": func(r *placing.Request) {
			r.Hints = map[string][]string{"same_host": {"5c6e3e52-0c0c-4d0e-9a4e-000001000002"}}
		},
		"DifferentHostFilter": func(r *placing.Request) {
			r.Hints = map[string][]string{"different_host": {"5c6e3e52-0c0c-4d0e-9a4e-000001000002"}}
		},
		"SimpleCIDRAffinityFilter": func(r *placing.Request) {
			r.Hints = map[string][]string{"build_near_host_ip": {"10.0.3.7"}, "cidr": {"/23"}}
		},
		"JsonFilter": func(r *placing.Request) {
			r.Hints = map[string][]string{"query": {`["and", [">=", "$free_ram_mb", 1024], [">=", "$free_disk_mb", 204800]]`}}
		},
		"ReservationFilter/slices": func(r *placing.Request) {
			r.Hints, r.ProjectID, r.Resources = hint("r1"), "", nil
		},
		"DestinationFilter/cell":    func(r *placing.Request) { r.Cell = "c1" },
		"ComputeCapabilitiesFilter": func(r *placing.Request) { r.ExtraSpecs = map[string]string{"capabilities:hypervisor_type": "QEMU"} },
		"ImagePropertiesFilter": func(r *placing.Request) {
			r.ImageProperties = map[string]string{"hw_architecture": "x86_64", "img_hv_type": "qemu"}
		},
		"ServerGroupAffinityFilter": func(r *placing.Request) { r.Group = &placing.Group{Policy: "affinity", Hosts: []string{"node-00001"}} },
		"ServerGroupAntiAffinityFilter": func(r *placing.Request) {
			r.Group = &placing.Group{Policy: "anti-affinity", Members: []string{"5c6e3e52-0c0c-4d0e-9a4e-000001000002"}}
		},
	} {
		r := plain
		if change != nil {
			change(&r)
		}
		list, err := filters.New(append(filters.Enabled, judging...), options)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			f, all, hosts := one(b, list, name), s.All(), hostset.New(s.Len())
			b.ReportAllocs()
			for b.Loop() {
				copy(hosts, all)
				if test := f.For(s, &r, 150); test != nil {
					test.Keep(hosts)
				}
			}
			if hosts.Count() == 0 {
				b.Fatal("no host is left")
			}
		})
	}
}

// one returns the filter whose name begins name.
func one(b testing.TB, list []filters.Filter, name string) filters.Filter {
	for _, f := range list {
		if n := len(f.Name()); len(name) >= n && name[:n] == f.Name() {
			return f
		}
	}
	b.Fatal("there is no filter for " + name)
	return nil
}
