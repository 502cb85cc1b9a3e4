// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
)

// guestOf draws an instance, preemptible or not, that holds some VCPUs and 1 CUSTOM_RARE.
func guestOf(t *rapid.T, id string) inventory.Instance {
	return inventory.Instance{
		ID: id, Status: rapid.SampledFrom([]string{"ACTIVE", "BUILD"}).Draw(t, "status"), Preemptible: rapid.Bool().Draw(t, "preemptible"),
		Holds: amounts{"VCPU": rapid.Int64Range(1, 8).Draw(t, "vcpus"), "CUSTOM_RARE": 1},
	}
}

// rowOf draws a host with some guests. Its used amounts match the guests, or are arbitrary.
func rowOf(t *rapid.T, name string) inventory.HostState {
	h := inventory.HostState{Name: name, Up: true, IOOps: rapid.Int64Range(0, 3).Draw(t, "operations"), Stocks: stocks{}}
	for n := range rapid.IntRange(0, 3).Draw(t, "guests") {
		h.Instances = append(h.Instances, guestOf(t, fmt.Sprintf("%s-%d", name, n)))
	}
	for _, class := range []string{"VCPU", "CUSTOM_RARE"} {
		if class == "VCPU" || rapid.IntRange(0, 9).Draw(t, "rare") == 0 {
			h.Stocks[class] = inventory.Stock{Total: 64, Ratio: 1, Used: rapid.Int64Range(0, 64).Draw(t, "used")}
		}
	}
	return h
}

// States whose hosts were read again one by one equal the states of a full reading, except
// that they are known to have the same hosts.
func TestReadingHostsAnewGivesWhatReadingAllGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := make([]inventory.HostState, 20)
		for i := range rows {
			rows[i] = rowOf(t, fmt.Sprintf("h%02d", i))
		}
		first, err := inventory.NewStates(slices.Clone(rows), nil)
		if err != nil {
			t.Fatal(err)
		}
		s := first
		for range rapid.IntRange(1, 5).Draw(t, "readings") {
			i := rapid.IntRange(0, len(rows)-1).Draw(t, "host")
			rows[i] = rowOf(t, rows[i].Name)
			s = s.WithTaken([]inventory.Take{{Host: i, Instance: "on its way", Resources: amounts{"VCPU": 1}}}).WithHostRead(i, rows[i])
		}
		want, err := inventory.NewStates(rows, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, class := range []string{"VCPU", "CUSTOM_RARE"} {
			if diff := cmp.Diff(want.Column(class), s.Column(class), cmpopts.IgnoreUnexported(inventory.Column{})); diff != "" {
				t.Errorf("%s (-want +got):\n%s", class, diff)
			}
		}
		for i := range rows {
			if diff := cmp.Diff(want.Host(i), s.Host(i)); diff != "" {
				t.Errorf("host %d (-want +got):\n%s", i, diff)
			}
			for _, one := range rows[i].Instances {
				if on := s.HostsOf(one.ID); !slices.Equal(on, []int{i}) {
					t.Errorf("%s is on %v, want %d", one.ID, on, i)
				}
			}
		}
		if !slices.Equal(want.IOOps(), s.IOOps()) || len(s.HostsOf("on its way")) > 0 || !s.SameHosts(first) {
			t.Errorf("operations %v, want %v; same hosts: %v", s.IOOps(), want.IOOps(), s.SameHosts(first))
		}
	})
}

func TestReadingAHostAnewLeavesTheStatesBefore(t *testing.T) {
	row := inventory.HostState{Name: "h", IOOps: 1, Stocks: stocks{"VCPU": {Total: 8, Ratio: 1, Used: 3}}}
	before := states(t, []inventory.HostState{row})
	after := before.WithHostRead(0, inventory.HostState{Name: "another", Stocks: stocks{"DISK_GB": {Total: 8, Ratio: 1, Used: 5}}})
	if used := before.Column("VCPU").Used[0]; used != 3 || before.IOOps()[0] != 1 || before.Column("DISK_GB").Used[0] != 0 {
		t.Errorf("%d VCPUs, %d operations", used, before.IOOps()[0])
	}
	if h := after.Host(0); h.Name != "h" || after.Column("VCPU").Limit[0] != 0 || after.Column("DISK_GB").Used[0] != 5 {
		t.Errorf("%+v", h)
	}
}
