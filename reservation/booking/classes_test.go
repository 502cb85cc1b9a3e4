// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
)

// equipped returns hosts with custom resource classes.
func equipped() []inventory.Host {
	hosts := named("a", "b", "c")
	hosts[0].Capacity.Custom = map[string]int64{"CUSTOM_FPGA": 2, "CUSTOM_SGX": 0}
	hosts[1].Capacity.Custom = map[string]int64{"CUSTOM_GPU_A100": 4}
	return hosts
}

// asking returns a request of kind instance for these custom resource classes.
func asking(custom map[string]int64) reservation.Request {
	req := cpus(1, 1, 100, 200)
	req.Resources.Custom = custom
	return req
}

// classes returns n resource classes of that amount each.
func classes(n int, amount int64) map[string]int64 {
	custom := make(map[string]int64, n)
	for i := range n {
		custom[fmt.Sprintf("CUSTOM_C%d", i)] = amount
	}
	return custom
}

func TestResourceClassesOfWhichNothingIsAskedForAreDropped(t *testing.T) {
	s := newScene(t, equipped())
	custom := classes(60_000, 0)
	custom["CUSTOM_FPGA"] = 1
	r := s.book(t, asking(custom))
	want := resource.Vector{VCPUs: 1, Custom: map[string]int64{"CUSTOM_FPGA": 1}}
	if got := s.get(t, r.ID).Resources; !got.Equal(want) || len(got.Custom) != 1 {
		t.Errorf("stored with %d classes: %.200v", len(got.Custom), got)
	}
	whole := during(1, 300, 400)
	whole.Resources.Custom = classes(60_000, 0)
	if r := s.book(t, whole); r.Resources.Custom != nil {
		t.Errorf("whole hosts are stored with %d classes", len(r.Resources.Custom))
	}
}

func TestResourceClassesAreThoseOfHosts(t *testing.T) {
	for name, tc := range map[string]struct {
		hosts  []inventory.Host
		custom map[string]int64
		says   []string
	}{
		"one that no host has":     {equipped(), map[string]int64{"CUSTOM_FPGAS": 1}, []string{"CUSTOM_FPGAS", "CUSTOM_FPGA, CUSTOM_GPU_A100"}},
		"one that hosts have 0 of": {equipped(), map[string]int64{"CUSTOM_SGX": 1}, []string{"no host has resource class CUSTOM_SGX"}},
		"a standard class":         {equipped(), map[string]int64{"VCPU": 1}, []string{`"VCPU" is not a custom resource class`}},
		"lower-case letters":       {equipped(), map[string]int64{"CUSTOM_fpga": 1}, []string{"is not a custom resource class"}},
		"a name without end":       {equipped(), map[string]int64{"CUSTOM_" + strings.Repeat("X", 249): 1}, []string{"at most 255 characters"}},
		"too many":                 {equipped(), classes(33, 1), []string{"names 33", "at most 32"}},
		"hosts without any":        {named("a"), map[string]int64{"CUSTOM_FPGA": 1}, []string{"the hosts have no custom resource classes"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, tc.hosts)
			_, err := s.bookings.Offer(t.Context(), owner, asking(tc.custom))
			got := fault.Of(err)
			if got == nil || got.Kind != fault.Invalid || got.Field != "resources.custom" {
				t.Fatalf("got %v, want an invalid resources.custom", err)
			}
			for _, want := range tc.says {
				if !strings.Contains(got.Message, want) || len(got.Message) > 500 {
					t.Errorf("the message %q does not contain %q, or is too long", got.Message, want)
				}
			}
		})
	}
}

func TestManyResourceClassesOfAHostMayBeAskedFor(t *testing.T) {
	hosts := named("a")
	hosts[0].Capacity.Custom = classes(40, 2)
	s := newScene(t, hosts)
	s.book(t, asking(classes(32, 1)))
}
