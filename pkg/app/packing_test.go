// SPDX-License-Identifier: Apache-2.0

package app

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/config"
)

func TestInstancesAreNotMovedOntoReservedHostsToFillThem(t *testing.T) {
	c, err := config.Load(nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Scheduler.Mode, c.Preemptible.FillReserved = config.ModeReplace, true
	if !reservationFilter(c, nil).Fill {
		t.Fatal("new instances fill nothing either")
	}
	list, err := packingFilters(c, nil)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list, func(f filters.Filter) bool { return f.Name() == filters.Reservation{}.Name() })
	if i < 0 || list[i].(filters.Reservation).Fill {
		t.Errorf("the filters are %+v", list)
	}
}

func TestOnlyInstancesThatRunOnHostsThatAreUpAreMeasured(t *testing.T) {
	guests := func(names ...string) (list []inventory.Instance) {
		for _, name := range names {
			list = append(list, inventory.Instance{ID: name, Status: "ACTIVE"})
		}
		return list
	}
	stopped := guests("d")
	stopped[0].Status = "SHUTOFF"
	states, err := inventory.NewStates([]inventory.HostState{
		{Name: "up", Node: "up", Up: true, Instances: append(guests("a", "b"), stopped...)}, {Name: "down", Node: "down", Instances: guests("c")},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string][]string{"up": {"a", "b"}}, running(states)); d != "" {
		t.Error(d)
	}
}
