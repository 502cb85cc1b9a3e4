// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/pkg/fault"
)

func TestFiltersRunInOrder(t *testing.T) {
	always := []string{"DestinationFilter", "ReservationFilter", "ZoneFilter", "AggregateFilter", "TraitFilter", "CapacityFilter", "JudgeableFilter"}
	asked := []string{
		"DestinationFilter", "ReservationFilter", "ZoneFilter", "AggregateFilter", "TenantAggregateFilter", "IsolatedAggregateFilter",
		"TraitFilter", "CapacityFilter", "JudgeableFilter",
	}
	for name, tc := range map[string]struct {
		enabled []string
		options filters.Options
		want    []string
	}{
		"Nova's own": {filters.Enabled, filters.Options{}, append(always[:7:7], filters.Enabled...)},
		"none":       {nil, filters.Options{}, always},
		"another order, one twice, one that runs anyway": {
			[]string{"AvailabilityZoneFilter", "ComputeFilter", "ReservationFilter", "AvailabilityZoneFilter"}, filters.Options{},
			append(always[:7:7], "AvailabilityZoneFilter", "ComputeFilter")},
		"what is asked of Placement": {nil, filters.Options{EnableIsolatedAggregateFiltering: true, LimitTenantsToPlacementAggregate: true}, asked},
	} {
		list, err := filters.New(tc.enabled, tc.options)
		var got []string
		for _, f := range list {
			got = append(got, f.Name())
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s (-want +got):\n%s%v", name, diff, err)
		}
	}
}

func TestEachFilterOfNovaIsThere(t *testing.T) {
	names := strings.Fields(`AggregateImagePropertiesIsolation AggregateInstanceExtraSpecsFilter AggregateIoOpsFilter AggregateMultiTenancyIsolation
		AggregateNumInstancesFilter AggregateTypeAffinityFilter AllHostsFilter AvailabilityZoneFilter ComputeCapabilitiesFilter ComputeFilter
		DifferentHostFilter ImagePropertiesFilter IoOpsFilter IsolatedHostsFilter JsonFilter MetricsFilter NUMATopologyFilter NumInstancesFilter
		PciPassthroughFilter SameHostFilter ServerGroupAffinityFilter ServerGroupAntiAffinityFilter SimpleCIDRAffinityFilter`)
	if diff := cmp.Diff(names, filters.Names()); diff != "" {
		t.Errorf("filters that may be enabled (-want +got):\n%s", diff)
	}
	list, err := filters.New(filters.Names(), filters.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for n, f := range list[len(list)-len(names):] {
		if f.Name() != names[n] {
			t.Errorf("got %s where %s is expected", f.Name(), names[n])
		}
	}
}

func TestNovaAsksSomeFiltersOncePerRequest(t *testing.T) {
	again := map[string]bool{}
	list, err := filters.New([]string{"ComputeFilter", "JsonFilter", "IoOpsFilter", "ComputeCapabilitiesFilter"}, filters.Options{})
	for _, f := range list {
		_, once := f.(filters.Once)
		again[f.Name()] = !once
	}
	want := map[string]bool{
		"DestinationFilter": true, "ReservationFilter": true, "ZoneFilter": true, "AggregateFilter": true, "TraitFilter": true, "CapacityFilter": true,
		"JudgeableFilter": true, "ComputeFilter": false, "JsonFilter": true, "IoOpsFilter": true, "ComputeCapabilitiesFilter": false,
	}
	if diff := cmp.Diff(want, again); diff != "" || err != nil {
		t.Errorf("asked for each instance (-want +got):\n%s%v", diff, err)
	}
}

func TestFiltersThatCannotRunAreRefused(t *testing.T) {
	metrics := []string{"cpu.percent=1"}
	for name, tc := range map[string]struct {
		enabled []string
		options filters.Options
		want    string // part of the error; empty if there is none
	}{
		"another name":      {[]string{"ComputerFilter"}, filters.Options{}, `did you mean "ComputeFilter"?`},
		"no name":           {[]string{""}, filters.Options{}, "there is no filter"},
		"a path":            {[]string{"nova.scheduler.filters.compute_filter.ComputeFilter"}, filters.Options{}, "use its name alone: ComputeFilter"},
		"all filters":       {[]string{filters.AllFilters}, filters.Options{}, "is for available_filters"},
		"all are available": {[]string{"JsonFilter"}, filters.Options{Available: []string{filters.AllFilters}}, ""},
		"one is available": {[]string{"JsonFilter"}, filters.Options{
			Available: []string{"nova.scheduler.filters.json_filter.JsonFilter"}}, ""},
		"another is available": {[]string{"JsonFilter"}, filters.Options{
			Available: []string{"nova.scheduler.filters.compute_filter.ComputeFilter"}}, "JsonFilter is not among the available_filters"},
		"one of somebody else": {[]string{"ComputeFilter"}, filters.Options{
			Available: []string{filters.AllFilters, "site.filters.RackFilter"}}, `"site.filters.RackFilter" is not a filter of Nova`},
		"no path": {[]string{"ComputeFilter"}, filters.Options{Available: []string{""}}, `"" is not a filter of Nova`},
		"one in another module": {[]string{"ComputeFilter"}, filters.Options{
			Available: []string{"nova.scheduler.filters.json_filter.ComputeFilter"}}, "is not a filter of Nova"},
		"metrics, with nobody to ask":    {[]string{"MetricsFilter"}, filters.Options{Alone: true, MetricsWeightSetting: metrics}, "the metric cpu.percent, and there is no nova-scheduler"},
		"metrics, with somebody to ask":  {[]string{"MetricsFilter"}, filters.Options{MetricsWeightSetting: metrics}, ""},
		"no metrics, with nobody to ask": {[]string{"MetricsFilter"}, filters.Options{Alone: true, MetricsWeightSetting: []string{"=1", "cpu", "cpu=x"}}, ""},
	} {
		_, err := filters.New(tc.enabled, tc.options)
		if (err == nil) != (tc.want == "") || err != nil && (!fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want an error with %q", name, err, tc.want)
		}
	}
}
