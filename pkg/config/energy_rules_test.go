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
	got, err := config.Energy{SpareCapacity: []string{"VCPU:64", " MEMORY_MB : 1024", "DISK_GB:10", "CUSTOM_GPU:2"}}.PlanRules()
	want := resource.Vector{VCPUs: 64, MemoryMB: 1024, DiskGB: 10, Custom: map[string]int64{"CUSTOM_GPU": 2}}
	if diff := cmp.Diff(want, got.SpareCapacity); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
	_, err = config.Energy{SpareCapacity: []string{"CPUS:4"}, Rules: "paper"}.PlanRules()
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "spare_capacity") {
		t.Errorf("an unknown class: got %v", err)
	}
}

func TestThePresetOfThePaperLiftsTheLimits(t *testing.T) {
	rules, err := config.Energy{Rules: "paper", SpareHosts: 5, MaxBooting: 1}.PlanRules()
	if diff := cmp.Diff(energy.Paper(), rules); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}
