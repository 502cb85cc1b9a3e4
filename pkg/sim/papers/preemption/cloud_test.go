// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/preemption"
)

// small returns options of a run of a second.
func small() Options {
	o := Defaults()
	o.Hosts, o.Days, o.WarmUp, o.Runs, o.Shares = 10, 8, 1, 3, []float64{0.3, 0.6}
	return o
}

// book counts independently what is on each host.
type book struct {
	o    Options
	on   map[string]*inventory.Instance // by id
	cost preemption.Cost

	evictions, refused, ended int
}

// free returns what is free on each host, and what would be free without preemptible instances.
func (b *book) free(class string) (full, normal map[string]int64) {
	full, normal = map[string]int64{}, map[string]int64{}
	for host := range b.o.Hosts {
		name := fmt.Sprintf("h%0*d", len(fmt.Sprint(b.o.Hosts-1)), host)
		full[name], normal[name] = amounts(b.o.Host)[class], amounts(b.o.Host)[class]
	}
	for _, one := range b.on {
		full[one.Host] -= one.Holds[class]
		if !one.Preemptible {
			normal[one.Host] -= one.Holds[class]
		}
	}
	return full, normal
}

// roomy reports whether a host has room for an instance, in the full or in the normal state.
func (b *book) roomy(needs map[string]int64, spare bool) (any bool) {
	fits := map[string]int{}
	for class, amount := range needs {
		full, normal := b.free(class)
		if spare {
			full = normal
		}
		for host, free := range full {
			if free >= amount {
				fits[host]++
			}
		}
	}
	for _, n := range fits {
		any = any || n == len(needs)
	}
	return any
}

// cheapest returns the least cost of instances of a host that make room for needs, by exhaustive
// search.
func (b *book) cheapest(e *event, host string, needs map[string]int64) (least int64, possible bool) {
	var spots []*inventory.Instance
	for _, one := range b.on {
		if one.Host == host && one.Preemptible {
			spots = append(spots, one)
		}
	}
	for set := range 1 << len(spots) {
		cost, enough := int64(0), true
		for class, amount := range needs {
			full, _ := b.free(class)
			free := full[host]
			for n, one := range spots {
				if set>>n&1 == 1 {
					free += one.Holds[class]
				}
			}
			enough = enough && free >= amount
		}
		for n, one := range spots {
			if set>>n&1 == 1 {
				cost += b.cost.Of(one, e.at)
			}
		}
		if enough && (!possible || cost < least) {
			least, possible = cost, true
		}
	}
	return least, possible
}

// see follows an event and returns an error if it violates a rule.
func (b *book) see(e *event) error {
	if e.ended != nil {
		if one := b.on[e.ended.ID]; one == nil || one.Launched != e.ended.Launched || one.Host != e.ended.Host {
			return fmt.Errorf("%s ends, which does not run", e.ended.ID)
		}
		delete(b.on, e.ended.ID)
		b.ended++
		return nil
	}
	makesRoom := !e.request.Preemptible && b.cost != nil
	if e.placed == nil {
		b.refused++
		if b.roomy(e.request.Resources, makesRoom) {
			return fmt.Errorf("%s is refused, and there is room: %s", e.request.ID, e.plan.Decision.Reason)
		}
		return nil
	}
	victims := e.plan.Picks[0].Victims
	if len(victims.Instances) > 0 {
		if err := b.evict(e, makesRoom); err != nil {
			return err
		}
	}
	b.on[e.placed.ID] = e.placed
	for class := range amounts(b.o.Host) {
		full, _ := b.free(class)
		for host, free := range full {
			if free < 0 {
				return fmt.Errorf("%s provides %d %s more than it has", host, -free, class)
			}
		}
	}
	return nil
}

func (b *book) evict(e *event, allowed bool) error {
	b.evictions++
	victims := e.plan.Picks[0].Victims
	if !allowed || b.roomy(e.request.Resources, false) {
		return fmt.Errorf("%v leave for %s, and need not", victims.IDs(), e.request.ID)
	}
	least, possible := b.cheapest(e, e.placed.Host, e.request.Resources)
	if !possible || victims.Cost != least {
		return fmt.Errorf("%v cost %d, and %d would do", victims.IDs(), victims.Cost, least)
	}
	for _, v := range victims.Instances {
		if one := b.on[v.ID]; one == nil || !one.Preemptible || one.Host != e.placed.Host || !slices.Contains(e.plan.Picks[0].Take.Victims, v.ID) {
			return fmt.Errorf("%s leaves, which cannot make room there", v.ID)
		}
		delete(b.on, v.ID)
	}
	return nil
}

// The test counts again at each event. No host provides more than it has. Only preemptible
// instances leave, only if there is no room, and no cheaper ones would do. An instance is refused
// only if there is no room and none can be made.
func TestTheCloudKeepsItsRulesAtEachEvent(t *testing.T) {
	o := small()
	from, err := o.source(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range o.settings() {
		t.Run(s.name, func(t *testing.T) {
			b := &book{o: o, on: map[string]*inventory.Instance{}}
			if s.cost != "" {
				if b.cost, err = preemption.NewCost(s.cost, o.costOptions(s)); err != nil {
					t.Fatal(err)
				}
			}
			tally, err := o.trial(context.Background(), from, s, 0, b.see)
			if err != nil {
				t.Fatal(err)
			}
			if b.ended == 0 || b.refused == 0 || (b.evictions > 0) != (s.cost != "") {
				t.Errorf("%d ends, %d refusals, %d evictions: nothing is shown", b.ended, b.refused, b.evictions)
			}
			if tally.wrong != 0 || (tally.victims > 0) != (s.cost != "") || (tally.asked[spot] == 0) != s.without {
				t.Errorf("%+v", tally)
			}
		})
	}
}

// The states that trial carries from event to event equal those of a reading of the whole cloud.
func TestTheStatesAreThoseOfAReading(t *testing.T) {
	o := small()
	o.Days = 2
	from, err := o.source(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	_, err = o.trial(context.Background(), from, o.settings()[3], 0, func(e *event) error {
		if n++; n%50 != 0 {
			return nil
		}
		rows := make([]inventory.HostState, e.before.Len())
		for i := range rows {
			rows[i] = *e.before.Host(i)
			for class, stock := range rows[i].Stocks {
				stock.Used = 0
				for _, one := range rows[i].Instances {
					stock.Used += one.Holds[class]
				}
				if stock != rows[i].Stocks[class] {
					return fmt.Errorf("%s: %+v, want %+v", class, rows[i].Stocks[class], stock)
				}
			}
		}
		read, err := inventory.NewStates(rows, nil)
		if err != nil {
			return err
		}
		for class := range amounts(o.Host) {
			got, want := e.before.Column(class), read.Column(class)
			if !slices.Equal(got.Used, want.Used) || !slices.Equal(got.Evictable, want.Evictable) {
				return fmt.Errorf("%s: used %v, yield %v; want %v, %v", class, got.Used, got.Evictable, want.Used, want.Evictable)
			}
		}
		return nil
	})
	if err != nil || n < 500 {
		t.Errorf("%d events: %v", n, err)
	}
}
