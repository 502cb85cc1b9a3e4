// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

const (
	hour  = 3600
	start = span.Instant(100 * hour) // of the reservations of these tests
	end   = start + 10*hour
)

func snapshot(t interface{ Fatal(...any) }, hosts ...inventory.Host) *inventory.Snapshot {
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func host(name string, vcpus, memory, disk int64) inventory.Host {
	return inventory.Host{Name: name, Capacity: resource.Vector{VCPUs: vcpus, MemoryMB: memory, DiskGB: disk, Custom: map[string]int64{"CUSTOM_FPGA": 2}}}
}

// booked returns a reservation of whole hosts from start to end.
func booked(id string, hosts ...string) reservation.Reservation {
	r := reservation.Reservation{
		ID: id, ProjectID: "project-of-" + id, Status: reservation.Pending, Span: span.Span{Start: start, End: end},
		Terms: reservation.Terms{Kind: reservation.Hosts, Quantity: len(hosts)},
	}
	for _, h := range hosts {
		r.Claims = append(r.Claims, reservation.Claim{Host: h, Span: r.Span})
	}
	return r
}

// shared returns a reservation of each instances on each of the hosts.
func shared(id string, each int, hosts ...string) reservation.Reservation {
	r := booked(id, hosts...)
	r.Kind, r.Resources = reservation.Instances, resource.Vector{VCPUs: 2, MemoryMB: 512, DiskGB: 5}
	for i := range r.Claims {
		r.Claims[i].Slices = each
	}
	return r
}

func during(r reservation.Reservation, s span.Span, status reservation.Status) reservation.Reservation {
	r.Span, r.Status, r.Claims = s, status, slices.Clone(r.Claims)
	for i := range r.Claims {
		r.Claims[i].Span = s
	}
	return r
}

func desired(t *testing.T, now span.Instant, rules fence.Rules, live ...reservation.Reservation) fence.Layout {
	return fence.Desired(live, snapshot(t, host("a", 8, 16000, 100), host("b", 4, 32000, 50), host("c", 8, 16000, 0)), now, rules)
}

func TestAHostIsFencedFromItsLeadTimeUntilItsClaimIsOver(t *testing.T) {
	r := booked("r1", "a", "b")
	r.Claims[0].Span.End = end - hour // replaced by another host, which has no claim here
	rules := fence.Rules{Ahead: 2 * hour, Prepare: hour}
	for name, c := range map[string]struct {
		now    span.Instant
		status reservation.Status
		ahead  int64
		want   []string
	}{
		"while it waits for room":             {start, reservation.Waiting, fence.Forever, nil},
		"before the lead time":                {start - 2*hour - 1, reservation.Pending, 2 * hour, nil},
		"at the lead time":                    {start - 2*hour, reservation.Pending, 2 * hour, []string{"a", "b"}},
		"always":                              {1, reservation.Pending, fence.Forever, []string{"a", "b"}},
		"while it starts, though early":       {start - 5*hour, reservation.Starting, 2 * hour, []string{"a", "b"}},
		"while it lasts":                      {start + hour, reservation.Active, 0, []string{"a", "b"}},
		"when the claim on one host is over":  {end - hour, reservation.Active, 0, []string{"b"}},
		"after its end, which takes its time": {end + hour, reservation.Ending, 0, []string{"b"}},
		"when it has ended":                   {end, reservation.Ended, 0, nil},
		"when it was given up":                {start, reservation.Canceled, fence.Forever, nil},
	} {
		t.Run(name, func(t *testing.T) {
			rules.Ahead, r.Status = c.ahead, c.status
			l := desired(t, c.now, rules, r)
			if got := l.Aggregates[fence.Aggregate].Hosts; !slices.Equal(got, c.want) {
				t.Errorf("the fence has %v, want %v", got, c.want)
			}
			for _, h := range []string{"a", "b", "c"} {
				if slices.Contains(l.Traits[h], fence.Reserved) != slices.Contains(c.want, h) {
					t.Errorf("host %s has the traits %v", h, l.Traits[h])
				}
			}
		})
	}
}

func TestAClosedPoolIsInTheFence(t *testing.T) {
	in, out := host("in", 1, 1, 1), host("out", 1, 1, 1)
	in.Reservable = true
	for pool, want := range map[bool][]string{true: {"a", "in"}, false: {"a"}} {
		l := fence.Desired([]reservation.Reservation{booked("r1", "a")}, snapshot(t, in, out, host("a", 1, 1, 1)), start, fence.Rules{Pool: pool})
		if got := l.Aggregates[fence.Aggregate].Hosts; !slices.Equal(got, want) {
			t.Errorf("closed: %v; the fence has %v, want %v", pool, got, want)
		}
		if own := l.Aggregates[fence.AggregatePrefix+"r1"].Hosts; !slices.Equal(own, []string{"a"}) {
			t.Errorf("closed: %v; the reservation has %v", pool, own)
		}
		if slices.Contains(l.Traits["in"], fence.Reserved) != pool || l.Traits["out"] != nil {
			t.Errorf("closed: %v; the traits are %v", pool, l.Traits)
		}
	}
}

func TestTheFenceIsThereWithoutAnyReservation(t *testing.T) {
	l := desired(t, start, fence.Rules{})
	want := map[string]string{"trait:CUSTOM_ALMANAC_RESERVED": "required"}
	if f := l.Aggregates[fence.Aggregate]; len(l.Aggregates) != 1 || !maps.Equal(f.Metadata, want) || f.Zone != "" {
		t.Errorf("the aggregates are %v", l.Aggregates)
	}
}

func TestAReservationOfHostsHasItsOwnThingsFromThePreparationOn(t *testing.T) {
	rules := fence.Rules{Ahead: fence.Forever, Prepare: hour}
	r := booked("5e-a", "a", "b")
	if l := desired(t, start-hour-1, rules, r); len(l.Aggregates) != 1 || len(l.Flavors) > 0 {
		t.Errorf("before the preparation there are %v, %v", l.Aggregates, l.Flavors)
	}
	l := desired(t, start-hour, rules, r)
	a := l.Aggregates["almanac-reservation-5e-a"]
	if want := (map[string]string{
		"almanac:reservation": "5e-a", "almanac:project": "project-of-5e-a",
		"trait:CUSTOM_ALMANAC_RESERVED": "required", "trait:CUSTOM_ALMANAC_RESERVATION_5E_A": "required",
	}); !maps.Equal(a.Metadata, want) || !slices.Equal(a.Hosts, []string{"a", "b"}) {
		t.Errorf("its aggregate is %v", a)
	}
	if want := []string{"CUSTOM_ALMANAC_RESERVATION_5E_A", "CUSTOM_ALMANAC_RESERVED"}; !slices.Equal(l.Traits["b"], want) {
		t.Errorf("host b has the traits %v, want %v", l.Traits["b"], want)
	}
	f := l.Flavors["5e-a"]
	if want := (resource.Vector{VCPUs: 4, MemoryMB: 16000, DiskGB: 50}); !f.Resources.Equal(want) || f.Public || f.Name != "reservation:5e-a" {
		t.Errorf("its flavor is %v; want it private, and in each resource as small as the smallest host", f)
	}
	if want := (map[string]string{
		"almanac:reservation": "5e-a", "almanac:project": "project-of-5e-a", "trait:CUSTOM_ALMANAC_CLOSED": "required",
		"trait:CUSTOM_ALMANAC_RESERVED": "required", "trait:CUSTOM_ALMANAC_RESERVATION_5E_A": "required",
	}); !maps.Equal(f.ExtraSpecs, want) {
		t.Errorf("its flavor has the extra specs %v", f.ExtraSpecs)
	}
}

func TestAReservationOfHostsHasAFlavorOfEachConfiguredShape(t *testing.T) {
	small := inventory.Flavor{
		ID: "7", Name: "m1.small", Public: true, Resources: resource.Vector{VCPUs: 1, MemoryMB: 2048, Custom: map[string]int64{"CUSTOM_FPGA": 1}},
		ExtraSpecs: map[string]string{"hw:cpu_policy": "dedicated", "almanac:reservation": "none"},
	}
	odd, long := small, small
	odd.Name, long.Name = "größer/1", strings.Repeat("x", 250)
	l := desired(t, start, fence.Rules{Flavors: []inventory.Flavor{small, odd, long}}, booked("r1", "a"))
	f := l.Flavors["r1-m1.small"]
	if f.Name != "reservation:r1:m1.small" || f.Public || f.Resources.VCPUs != 1 || f.ExtraSpecs["hw:cpu_policy"] != "dedicated" ||
		f.ExtraSpecs["resources:CUSTOM_FPGA"] != "1" || f.ExtraSpecs["almanac:reservation"] != "r1" || f.ExtraSpecs["trait:CUSTOM_ALMANAC_RESERVATION_R1"] != "required" {
		t.Errorf("the flavor is %v", f)
	}
	if len(l.Flavors) != 4 {
		t.Errorf("there are %d flavors, want one of the whole host and one of each shape", len(l.Flavors))
	}
	for id, f := range l.Flavors {
		if len(id) > 255 || len(f.Name) > 255 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") != "" {
			t.Errorf("Nova refuses a flavor %q named %q", id, f.Name)
		}
	}
}

func TestAReservationOfInstancesHasRoomsForThem(t *testing.T) {
	r := shared("r1", 3, "a", "b")
	r.Resources.Custom = map[string]int64{"CUSTOM_FPGA": 2}
	l := desired(t, start, fence.Rules{}, r, shared("r2", 1, "b"))
	if want := map[string]int64{"CUSTOM_ALMANAC_RESERVATION_R1": 3, "CUSTOM_ALMANAC_RESERVATION_R2": 1}; !maps.Equal(l.Rooms["b"], want) {
		t.Errorf("host b has the reservation's resources %v, want %v", l.Rooms["b"], want)
	}
	if want := []string{"CUSTOM_ALMANAC_RESERVED", "CUSTOM_ALMANAC_SHARED"}; !slices.Equal(l.Traits["a"], want) {
		t.Errorf("host a has the traits %v, want %v", l.Traits["a"], want)
	}
	for id, want := range map[string][]string{"r1": {"a", "b"}, "r2": {"b"}} {
		if a := l.Aggregates["almanac-reservation-"+id]; !slices.Equal(a.Hosts, want) || a.Metadata["trait:CUSTOM_ALMANAC_SHARED"] != "required" || a.Metadata["reservation"] != id {
			t.Errorf("the aggregate of %s is %v", id, a)
		}
	}
	f := l.Flavors["r1"]
	if want := (map[string]string{
		"almanac:reservation": "r1", "almanac:project": "project-of-r1", "trait:CUSTOM_ALMANAC_CLOSED": "required",
		"aggregate_instance_extra_specs:reservation": "r1", "resources:CUSTOM_ALMANAC_RESERVATION_R1": "1", "resources:CUSTOM_FPGA": "2",
		"trait:CUSTOM_ALMANAC_RESERVED": "required", "trait:CUSTOM_ALMANAC_SHARED": "required",
	}); !maps.Equal(f.ExtraSpecs, want) || f.Resources.VCPUs != 2 {
		t.Errorf("its flavor is %v", f)
	}
}

func TestAShapeWithoutVCPUsTakesNoneThoughItsFlavorMustHaveOne(t *testing.T) {
	r := shared("r1", 1, "a")
	r.Resources = resource.Vector{Custom: map[string]int64{"CUSTOM_FPGA": 1}}
	f := desired(t, start, fence.Rules{}, r).Flavors["r1"]
	if f.Resources.VCPUs != 1 || f.Resources.MemoryMB != 1 || f.ExtraSpecs["resources:VCPU"] != "0" || f.ExtraSpecs["resources:MEMORY_MB"] != "0" {
		t.Errorf("the flavor is %v", f)
	}
}

func TestAHostJoinsTheNextReservationWhenTheOneBeforeHasLeft(t *testing.T) {
	rules := fence.Rules{Ahead: fence.Forever, Prepare: fence.Forever}
	for name, next := range map[string]reservation.Reservation{"of hosts": booked("next", "a"), "of instances": shared("next", 2, "a")} {
		t.Run(name, func(t *testing.T) {
			before := during(booked("before", "a"), span.Span{Start: start - hour, End: start}, reservation.Ending)
			next.Status = reservation.Starting
			l := desired(t, start+1, rules, before, next)
			if a := l.Aggregates["almanac-reservation-next"]; len(a.Hosts) > 0 {
				t.Errorf("while the earlier reservation ends, the next one's aggregate has %v", a.Hosts)
			}
			before.Status = reservation.Ended
			l = desired(t, start+1, rules, before, next)
			if a := l.Aggregates["almanac-reservation-next"]; !slices.Equal(a.Hosts, []string{"a"}) {
				t.Errorf("after the earlier reservation has ended, the next one's aggregate has %v", a.Hosts)
			}
		})
	}
}

func TestAHostThatHasLeftTheCloudIsInNothing(t *testing.T) {
	l := desired(t, start, fence.Rules{Flavors: nil}, booked("r1", "a", "gone"), booked("r2", "gone"))
	if a := l.Aggregates["almanac-reservation-r1"]; !slices.Equal(a.Hosts, []string{"a"}) || l.Traits["gone"] != nil {
		t.Errorf("the aggregate has %v, the host %v", a.Hosts, l.Traits["gone"])
	}
	if f := l.Flavors["r2"]; !f.Resources.IsZero() || f.Name == "" {
		t.Errorf("the flavor without a known host is %v, want an empty shape, so that the flavor stays unchanged", f)
	}
	for _, s := range fence.Diff(fence.Layout{}, l) {
		if s.Action == fence.CreateFlavor && s.Flavor.ID == "r2" {
			t.Error("a flavor is created for hosts of unknown size")
		}
	}
}

func TestAHostInTroubleStaysWhereItIs(t *testing.T) {
	h := host("a", 1, 1, 1)
	h.Problem = "its nova-compute is down"
	l := fence.Desired([]reservation.Reservation{booked("r1", "a")}, snapshot(t, h), start, fence.Rules{})
	if a := l.Aggregates["almanac-reservation-r1"]; !slices.Equal(a.Hosts, []string{"a"}) {
		t.Errorf("the aggregate has %v", a.Hosts)
	}
}
