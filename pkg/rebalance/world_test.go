// SPDX-License-Identifier: Apache-2.0

package rebalance_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/rebalance"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

const now = span.Instant(1_800_000_000)

// box is a host with its instances. It has 8 cores, and Nova sells each of them 16 times.
type box struct {
	name     string
	memory   int64
	guests   []inventory.Instance
	disabled bool
	down     bool
	power    inventory.Power
	flops    float64
	zone     string
	traits   []string
	promised span.Span
}

const boxCores = 8

// server returns a running instance.
func server(id string, vcpus, memory int64) inventory.Instance {
	return inventory.Instance{
		ID: id, Name: id, ProjectID: "p", Status: "ACTIVE",
		Flavor: inventory.Flavor{Name: fmt.Sprintf("%d-%d", vcpus, memory), Resources: resource.Vector{VCPUs: vcpus, MemoryMB: memory}},
	}
}

// promises are the promises of boxes.
type promises []box

func (promises) Reservation(string) (reservation.Reservation, bool) {
	return reservation.Reservation{}, false
}

func (p promises) Promised(t span.Instant) (claims []reservation.Claim) {
	for _, b := range p {
		if !b.promised.Empty() && b.promised.End > t {
			claims = append(claims, reservation.Claim{Host: b.name, Span: b.promised})
		}
	}
	return claims
}

type tester interface {
	Helper()
	Fatal(args ...any)
}

// statesOf returns the states of boxes.
func statesOf(t tester, boxes []box) *inventory.States {
	t.Helper()
	rows := make([]inventory.HostState, len(boxes))
	zones := map[string][]string{}
	for i, b := range boxes {
		row := inventory.HostState{
			Name: b.name, Node: b.name, Up: !b.down, Enabled: !b.disabled, Zone: b.zone, Traits: b.traits, Instances: slices.Clone(b.guests),
			Stocks: map[string]inventory.Stock{"VCPU": {Total: boxCores, Ratio: 16}, "MEMORY_MB": {Total: b.memory, Ratio: 1}},
		}
		for n := range row.Instances {
			row.Instances[n].Host = b.name
			for class, amount := range map[string]int64{
				"VCPU": row.Instances[n].Flavor.Resources.VCPUs, "MEMORY_MB": row.Instances[n].Flavor.Resources.MemoryMB,
			} {
				stock := row.Stocks[class]
				stock.Used += amount
				row.Stocks[class] = stock
			}
		}
		if b.zone != "" {
			zones[b.zone] = append(zones[b.zone], b.name)
		}
		rows[i] = row
	}
	var aggregates []inventory.Aggregate
	for zone, hosts := range zones {
		aggregates = append(aggregates, inventory.Aggregate{UUID: zone, Name: zone, Zone: zone, Hosts: hosts})
	}
	s, err := inventory.NewStates(rows, aggregates)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// situation returns the situation of boxes with server groups.
func situation(t tester, boxes []box, groups ...placing.Group) *rebalance.Situation {
	t.Helper()
	list, err := filters.New(filters.Enabled, filters.Options{
		Reservation: filters.Reservation{Promises: promises(boxes), Fence: filters.FenceAlways},
	})
	if err != nil {
		t.Fatal(err)
	}
	hosts := make([]inventory.Host, len(boxes))
	for i, b := range boxes {
		hosts[i] = inventory.Host{Name: b.name, Power: b.power, FlopsPerWatt: b.flops}
	}
	snapshot, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &rebalance.Situation{
		Now: now, States: statesOf(t, boxes), Hosts: snapshot, Filters: list, Groups: map[string]placing.Group{}, Share: 1,
		Closed: map[string]string{}, Told: "told",
	}
	for _, g := range groups {
		for _, member := range g.Members {
			s.Groups[member] = g
		}
	}
	return s
}

func plan(t *testing.T, s *rebalance.Situation, o rebalance.Options) rebalance.Plan {
	t.Helper()
	p, err := s.Plan(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// moves formats the moves of a plan as "a: h1 > h2".
func moves(p rebalance.Plan) (list []string) {
	for _, m := range p.Moves {
		list = append(list, fmt.Sprintf("%s: %s > %s", m.Instance, m.From, m.To))
	}
	return list
}

// carried returns the boxes after the moves.
func carried(boxes []box, list []rebalance.Move) []box {
	next := make([]box, len(boxes))
	for i, b := range boxes {
		b.guests = slices.Clone(b.guests)
		next[i] = b
	}
	at := func(name string) *box {
		return &next[slices.IndexFunc(next, func(b box) bool { return b.name == name })]
	}
	for _, m := range list {
		from, to := at(m.From), at(m.To)
		n := slices.IndexFunc(from.guests, func(i inventory.Instance) bool { return i.ID == m.Instance })
		to.guests = append(to.guests, from.guests[n])
		from.guests = slices.Delete(from.guests, n, n+1)
	}
	return next
}

// minYield returns the smallest yield by its definition (paper 002), over the hosts that are up
// and enabled.
func minYield(boxes []box) float64 {
	least := 1.0
	for _, b := range boxes {
		need := 0.0
		for _, i := range b.guests {
			if i.Status == "ACTIVE" {
				need += min(float64(i.Flavor.Resources.VCPUs), boxCores)
			}
		}
		if need > boxCores && !b.disabled && !b.down {
			least = min(least, boxCores/need)
		}
	}
	return least
}
