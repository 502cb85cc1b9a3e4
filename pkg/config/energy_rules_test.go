// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
)

func TestSpareCapacityIsReadByResourceClass(t *testing.T) {
	got, err := load(t, "[energy]\nspare_capacity = VCPU:64, MEMORY_MB : 1024, DISK_GB:10, CUSTOM_GPU:2\n")
	want := resource.Vector{VCPUs: 64, MemoryMB: 1024, DiskGB: 10, Custom: map[string]int64{"CUSTOM_GPU": 2}}
	if diff := cmp.Diff(want, got.Energy.PlanRules().SpareCapacity); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	var shown strings.Builder
	if err := config.Show(&shown, got); err != nil || !strings.Contains(shown.String(), "\nspare_capacity = CUSTOM_GPU:2,DISK_GB:10,MEMORY_MB:1024,VCPU:64\n") {
		t.Errorf("%v: it is shown as\n%s", err, shown.String())
	}
	for text, want := range map[string]string{
		"CPUS:4": "must use the classes", "GPU:2": "CUSTOM_*", "VCPU": "such as VCPU:64", "VCPU:-1": "such as VCPU:64", "VCPU:x": "such as VCPU:64",
	} {
		_, err := load(t, "[energy]\nrules = paper\nspare_capacity = "+text)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "spare_capacity") || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

func TestThePresetOfThePaperLiftsTheLimits(t *testing.T) {
	c, err := load(t, "[energy]\nrules = paper\nspare_hosts = 5\nmax_booting = 1\n")
	if diff := cmp.Diff(energy.Paper(), c.Energy.PlanRules()); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}
