// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// The name of a host has as many values as there are hosts, more than a level may have.
func TestInstancesLieApartByTheNamesOfManyHosts(t *testing.T) {
	hosts := make([]inventory.Host, 1200)
	for i := range hosts {
		hosts[i] = inventory.Host{Name: fmt.Sprintf("h%04d", i), Reservable: true, Power: inventory.PowerOn, Capacity: resource.Vector{VCPUs: 4}}
	}
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := planning.NewView(100, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	near := reservation.Reservation{ID: "x", ProjectID: "p", Claims: []reservation.Claim{
		{Host: "h0000", Span: span.New(100, 50), Slices: 1}, {Host: "h0001", Span: span.New(100, 50), Slices: 1}, {Host: "h0002", Span: span.New(0, 100), Slices: 1},
	}}
	v.Project = "p"
	v.Apart = func(string, []string) []planning.Neighbor {
		return []planning.Neighbor{{Of: &near, Claims: near.Claims}}
	}
	req := reservation.Request{Duration: 10, Terms: reservation.Terms{
		Quantity: 1, Kind: reservation.Instances, Resources: resource.Vector{VCPUs: 1}, Together: reservation.Together{By: "name", ApartFrom: "x"},
	}}
	plan, err := planning.NewPlan(v, req)
	if err != nil || plan.Claims[0].Host != "h0002" { // whose claim has ended
		t.Errorf("the instance is on %v, %v", plan.Claims, err)
	}
	req.Together.ApartFrom = "y"
	if _, err := planning.NewPlan(v, req); err == nil {
		t.Error("a reservation that is not there is accepted")
	}
	v.Project, req.Together.ApartFrom = "other", "x"
	if _, err := planning.NewPlan(v, req); err == nil {
		t.Error("a reservation of another project is accepted")
	}
}

// Whether hosts lie as asked depends on the values that they, and those of the reservations that are named, have now.
func TestHostsLieAsTheirValuesAre(t *testing.T) {
	var hosts []inventory.Host
	for name, rack := range map[string]string{"a1": "a", "a2": "a", "b1": "b", "c1": "c", "none": ""} {
		h := inventory.Host{Name: name, Reservable: true, Power: inventory.PowerOn, Capacity: resource.Vector{VCPUs: 4}}
		if rack != "" {
			h.Properties = map[string]inventory.Value{"rack": inventory.StringValue(rack)}
		}
		hosts = append(hosts, h)
	}
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	v, err := planning.NewView(100, s, nil)
	if err != nil {
		t.Fatal(err)
	}
	claims := func(names string) (list []reservation.Claim) {
		for name := range strings.FieldsSeq(names) {
			w := span.New(100, 50)
			if past, is := strings.CutPrefix(name, "past-"); is {
				name, w = past, span.New(50, 50)
			}
			list = append(list, reservation.Claim{Host: name, Span: w})
		}
		return list
	}
	same, spread := reservation.Together{By: "rack", Rule: reservation.TogetherSame}, reservation.Together{By: "rack", Rule: reservation.TogetherSpread, Values: 2}
	apart := reservation.Together{By: "rack", ApartFrom: "x"}
	sameApart := same
	sameApart.ApartFrom = "x"
	for _, c := range []struct {
		rule       reservation.Together
		own, other string
		lies       bool
	}{
		{same, "a1 a2", "", true}, {same, "a1 b1", "", false}, {same, "a1 past-b1", "", true}, {same, "a1 gone", "", true}, {same, "none", "", false},
		{spread, "a1 b1 none", "", true}, {spread, "a1 a2", "", false}, {spread, "a1 none", "", false}, {spread, "a1 gone", "", true},
		{reservation.Together{By: "rack", Rule: reservation.TogetherFewest, Preferred: true}, "a1 b1 none", "", true},
		{apart, "a1 b1", "c1", true}, {apart, "a1 b1", "c1 a2", false}, {apart, "a1", "past-a2", true}, {apart, "none", "c1", false}, {apart, "a1 gone", "gone", true},
		{apart, "a1", "none", true}, {sameApart, "a1 b1", "c1", false}, {sameApart, "a1 a2", "c1", true},
		{reservation.Together{By: "wrack", ApartFrom: "x"}, "a1", "b1", false}, {reservation.Together{}, "a1", "a1", true},
	} {
		r := reservation.Reservation{Terms: reservation.Terms{Together: c.rule}, Claims: claims(c.own)}
		if lies := v.Hosts.Lies(100, &r, []planning.Neighbor{{Claims: claims(c.other)}}); lies != c.lies {
			t.Errorf("%v: %s beside %s lie so: %v", c.rule, c.own, c.other, lies)
		}
	}
}
