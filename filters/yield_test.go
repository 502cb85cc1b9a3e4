// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

func TestAHostIsRefusedWhereTheYieldWouldBeUnderTheFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := &filters.Yield{Floor: rapid.Float64Range(0, 1).Draw(t, "floor"), Share: rapid.Float64Range(0.1, 1).Draw(t, "share")}
		cores, used := rapid.Int64Range(1, 16).Draw(t, "cores"), rapid.Int64Range(0, 64).Draw(t, "used")
		asked := rapid.Int64Range(0, 16).Draw(t, "asked")
		s, err := inventory.NewStates([]inventory.HostState{
			{Name: "a", Stocks: map[string]inventory.Stock{"VCPU": {Total: cores + 1, Reserved: 1, Ratio: 16, Used: used}}}, {Name: "none"},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		r := &placing.Request{Instances: []string{"i"}, Resources: map[string]int64{"VCPU": asked}}
		passes, why := true, ""
		if test := f.For(s, r, 0); test != nil {
			left := s.All().Clone()
			test.Keep(left)
			if passes = left.Has(0); !passes {
				why = test.Why(0)
			}
		}
		yield := min(1, float64(cores)/(f.Share*float64(used+asked)))
		if want := asked == 0 || f.Floor == 0 || yield >= f.Floor-1e-9; passes != want {
			t.Fatalf("with %v the yield is %v, but the host passes: %v", f, yield, passes)
		}
		if !passes && !strings.Contains(why, "yield") {
			t.Fatalf("the reason is %q", why)
		}
		r.Rebuild = true
		if f.For(s, r, 0) != nil {
			t.Fatal("the filter judges an instance that stays on its host")
		}
	})
}

func TestTheYieldFilterIsThereOnlyWithAFloor(t *testing.T) {
	for floor, want := range map[float64]bool{0: false, 0.5: true} {
		list, err := filters.New(nil, filters.Options{Yield: filters.Yield{Floor: floor, Share: 1}})
		if err != nil {
			t.Fatal(err)
		}
		there := false
		for _, f := range list {
			there = there || f.Name() == "YieldFilter"
		}
		if there != want {
			t.Errorf("with a floor of %v, is the filter enabled: %v", floor, there)
		}
	}
}
