// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
)

// mixed returns three plain hosts and three more efficient ones, each with a feature that no
// other host has.
func mixed() []inventory.Host {
	hosts := named("plain1", "plain2", "plain3", "accelerated", "large", "marked")
	for i := range hosts[3:] {
		hosts[3+i].FlopsPerWatt = float64(9 - i)
	}
	accelerated, large, marked := &hosts[3], &hosts[4], &hosts[5]
	accelerated.Capacity.Custom = map[string]int64{"CUSTOM_GPU": 4}
	accelerated.Properties = map[string]inventory.Value{"gpu": inventory.StringValue("a100")}
	large.Capacity.MemoryMB *= 2
	marked.Traits = []string{"CUSTOM_LICENSED"}
	return hosts
}

// Each request names a feature of one host.
func TestScarceHostsAreLeftToThoseWhoNameWhatTheyHave(t *testing.T) {
	for name, tc := range map[string]struct {
		filter string
		custom map[string]int64
		want   map[reservation.Kind]string
	}{
		"nothing": {"", nil, map[reservation.Kind]string{reservation.Hosts: "plain1", reservation.Instances: "plain1"}},
		"a property": {`["or", ["=", "$gpu", "a100"], ["!=", "$gpu", "a100"]]`, nil,
			map[reservation.Kind]string{reservation.Hosts: "plain1", reservation.Instances: "plain1"}}, // the request does not name the resource class
		"memory":          {`[">=", "$memory_mb", 1]`, nil, map[reservation.Kind]string{reservation.Hosts: "large", reservation.Instances: "large"}},
		"a trait":         {`["not", ["in", "CUSTOM_LICENSED", "$aggregates"]]`, nil, map[reservation.Kind]string{reservation.Hosts: "marked", reservation.Instances: "marked"}},
		"what all have":   {`["!=", "$name", "x"]`, nil, map[reservation.Kind]string{reservation.Hosts: "plain1", reservation.Instances: "plain1"}},
		"a class":         {"", map[string]int64{"CUSTOM_GPU": 1}, map[reservation.Kind]string{reservation.Instances: "accelerated"}},
		"none is plain":   {`["in", "$name", "marked", "accelerated"]`, nil, map[reservation.Kind]string{reservation.Hosts: "marked", reservation.Instances: "marked"}},
		"the only choice": {`["=", "$name", "accelerated"]`, nil, map[reservation.Kind]string{reservation.Hosts: "accelerated", reservation.Instances: "accelerated"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, mixed())
			for kind, want := range tc.want {
				req := during(1, 100, 200)
				if kind == reservation.Instances {
					req = asking(tc.custom)
				}
				req.HostProperties = tc.filter
				plan, err := s.bookings.Offer(t.Context(), owner, req)
				if err != nil || plan.Claims[0].Host != want {
					t.Errorf("%s: %+v, %v; want %s", kind, plan.Claims, err, want)
				}
			}
		})
	}
}

func TestScarceHostsServeWhereOthersAreTaken(t *testing.T) {
	s := newScene(t, mixed())
	want := []string{"plain1", "plain2", "plain3", "large", "marked", "accelerated"} // hosts with one scarce feature, by efficiency, and then the one with two
	if diff := cmp.Diff(want, claimed(s.book(t, during(6, 100, 200)))); diff != "" {
		t.Errorf("hosts (-want +got):\n%s", diff)
	}
}

// A scarce host is chosen if instances run on the others.
func TestGuestsCountMoreThanScarcity(t *testing.T) {
	hosts := mixed()
	for i := range hosts[:3] {
		hosts[i].InstanceCount = 1
	}
	s := newScene(t, hosts, leading)
	if got := claimed(s.book(t, during(1, leadTime, 200))); got[0] != "large" {
		t.Errorf("%v, want large", got)
	}
}

// The cases differ in how many of six hosts have the feature.
func TestWhatHalfOfThePoolHasIsNotScarce(t *testing.T) {
	for name, give := range map[string]func(h *inventory.Host){
		"a property":       func(h *inventory.Host) { h.Properties = map[string]inventory.Value{"nvme": inventory.BoolValue(true)} },
		"a resource class": func(h *inventory.Host) { h.Capacity.Custom = map[string]int64{"CUSTOM_FPGA": 1} },
		"a custom trait":   func(h *inventory.Host) { h.Traits = []string{"CUSTOM_FAST"} },
		"memory":           func(h *inventory.Host) { h.Capacity.MemoryMB *= 2 },
		"vCPUs":            func(h *inventory.Host) { h.Capacity.VCPUs *= 2 },
	} {
		for count, want := range map[int]string{2: "h2", 3: "h0"} {
			t.Run(fmt.Sprint(name, " on ", count), func(t *testing.T) {
				hosts := named("h0", "h1", "h2", "h3", "h4", "h5", "other")
				hosts[6].Reservable = false // not in the pool, so it does not count
				for i := range count {
					give(&hosts[i])
				}
				s := newScene(t, hosts)
				if got := claimed(s.book(t, during(1, 100, 200))); got[0] != want {
					t.Errorf("%v, want %s", got, want)
				}
			})
		}
	}
}

func TestWhatIsNotScarceLeavesTheMostEfficientHostFirst(t *testing.T) {
	for name, give := range map[string]func(h *inventory.Host){
		"a trait of its CPU": func(h *inventory.Host) { h.Traits = []string{"HW_CPU_X86_AVX512F"} },
		"a false property":   func(h *inventory.Host) { h.Properties = map[string]inventory.Value{"nvme": inventory.BoolValue(false)} },
		"a property of 0":    func(h *inventory.Host) { h.Properties = map[string]inventory.Value{"gpus": inventory.NumberValue(0)} },
		"an empty property":  func(h *inventory.Host) { h.Properties = map[string]inventory.Value{"gpu": inventory.StringValue("")} },
		"an empty class":     func(h *inventory.Host) { h.Capacity.Custom = map[string]int64{"CUSTOM_FPGA": 0} },
		"a little more":      func(h *inventory.Host) { h.Capacity = h.Capacity.Add(resource.Vector{VCPUs: 7, MemoryMB: 16383}) },
		"more disk":          func(h *inventory.Host) { h.Capacity.DiskGB *= 10 },
	} {
		t.Run(name, func(t *testing.T) {
			hosts := named("a", "b", "c")
			hosts[2].FlopsPerWatt = 9
			give(&hosts[2])
			s := newScene(t, hosts)
			if got := claimed(s.book(t, during(1, 100, 200))); got[0] != "c" {
				t.Errorf("%v, want c", got)
			}
		})
	}
}
