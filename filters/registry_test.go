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

func TestAFilterThatIsNotThereIsRefused(t *testing.T) {
	for name, want := range map[string]string{
		"NUMATopologyFilter": "NUMATopologyFilter of Nova is not in Almanac, which has AggregateMultiTenancyIsolation, AvailabilityZoneFilter,",
		"ComputerFilter":     `did you mean "ComputeFilter"?`,
		"":                   "there is no filter",
	} {
		if _, err := filters.New([]string{name}, filters.Options{}); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want a word on %q", name, err, want)
		}
	}
}
