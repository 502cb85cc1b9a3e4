// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/weighers"
)

// setting is how one cloud chooses victims, and its share of preemptible requests.
type setting struct {
	name  string
	share float64
	cost  string // [preemptible] victim_cost; empty: no victims
	blind bool   // no flavor states the cost of its instances
	// without is true if the cloud has no preemptible instances.
	without bool
}

// The names of the settings that are compared with the costs.
const (
	without = "without" // no preemptible instances
	stay    = "no"      // [preemptible] preempt_action = no
	equal   = "equal"   // a cost that is equal for all instances
)

// settings returns the settings that are compared with the share of preemptible requests that the
// option Share sets.
func (o Options) settings() []setting {
	list := []setting{
		{name: without, without: true, share: o.Share},
		{name: stay, share: o.Share},
		{name: equal, share: o.Share, cost: "priority", blind: true},
	}
	for _, cost := range o.Costs {
		list = append(list, setting{name: cost, share: o.Share, cost: cost})
	}
	return list
}

// The extra specs that flavors have, by the default names of the configuration, and one that no
// flavor has.
const (
	priceSpec    = "almanac:price"
	prioritySpec = "almanac:priority"
	noSpec       = "almanac:nowhere"
)

// costOptions returns the options of the costs of a setting. Those of a blind setting name extra
// specs that no flavor has.
func (o Options) costOptions(s setting) preemption.CostOptions {
	c := preemption.CostOptions{Period: o.Period, PriceSpec: priceSpec, PrioritySpec: prioritySpec}
	if s.blind {
		c.PriceSpec, c.PrioritySpec = noSpec, noSpec
	}
	return c
}

// pipeline returns the service's scheduler with its default filters and weighers, on hosts without
// reservations.
func (o Options) pipeline(s setting, bookings *sim.Booking) (*scheduler.Pipeline, error) {
	period, err := preemption.NewCost(preemption.PartialHour, o.costOptions(s))
	if err != nil {
		return nil, err
	}
	var evictor *preemption.Evictor
	if s.cost != "" {
		cost, err := preemption.NewCost(s.cost, o.costOptions(s))
		if err != nil {
			return nil, err
		}
		evictor = &preemption.Evictor{Cost: cost}
	}
	list, err := filters.New(filters.Enabled, filters.Options{Reservation: filters.Reservation{Promises: bookings, Fence: filters.FenceAlways}, Evicts: evictor != nil})
	if err != nil {
		return nil, err
	}
	weighted, err := weighers.Choose([]string{weighers.AllWeighers}, nil, weighers.Ports{Promises: bookings, Efficiencies: bookings, Evictor: evictor, Period: period})
	if err != nil {
		return nil, err
	}
	return &scheduler.Pipeline{Filters: list, Weighers: weighted, SubsetSize: 1, Evictor: evictor, Spares: true}, nil
}

// trial simulates the cloud of a setting with the machines and random numbers of a run. watch may
// be nil.
func (o Options) trial(ctx context.Context, from source, s setting, run int, watch func(*event) error) (*tally, error) {
	timeline := sim.NewTimeline(sim.Second(0))
	bookings, hosts, err := o.bookings(ctx, timeline, o.Hosts)
	if err != nil {
		return nil, err
	}
	c, err := newCloud(timeline, hosts, o.Host)
	if err != nil {
		return nil, err
	}
	if c.pipeline, err = o.pipeline(s, bookings); err != nil {
		return nil, err
	}
	if c.tally, err = o.tally(); err != nil {
		return nil, err
	}
	c.draw, c.refuses, c.watch = sim.Chance(o.Seed, "draws", run).IntN, s.without, watch
	c.mark = newMarker(o.Seed, run).mark
	stream, err := from.open(ctx, run, s.share)
	if err != nil {
		return nil, err
	}
	err = c.feed(sim.Second(0), stream)
	if err == nil {
		err = timeline.Run(ctx, c.tally.until)
	}
	c.close()
	return c.tally, errors.Join(err, stream.Close())
}

// bookings returns a sim.Booking without reservations, and its hosts.
func (o Options) bookings(ctx context.Context, t *sim.Timeline, hosts int) (*sim.Booking, []inventory.Host, error) {
	list := sim.Hosts(hosts)
	snapshot, err := inventory.NewSnapshot(list, nil, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("make the hosts: %w", err)
	}
	bookings, err := sim.NewBooking(ctx, t, snapshot, sim.BookingOptions{})
	return bookings, list, err
}

func (o Options) tally() (*tally, error) {
	var costs []preemption.Cost
	for _, name := range preemption.Costs {
		cost, err := preemption.NewCost(name, o.costOptions(setting{}))
		if err != nil {
			return nil, err
		}
		costs = append(costs, cost)
	}
	return newTally(sim.Second(0), o.Days, o.WarmUp, costs, costs[0]), nil
}

// marker sets random ids, as Nova does, and for preemptible instances a flavor with a price and a
// priority.
type marker struct {
	ids, priority func() uint64
	flavors       map[mark]inventory.Flavor
}

// mark identifies a flavor by its resources and its priority.
type mark struct {
	vcpus, memory, disk int64
	priority            string
}

// priorities are those of preemptible instances; each has the same probability.
var priorities = []string{"1", "10", "100"}

func newMarker(seed uint64, run int) *marker {
	chance := sim.Chance(seed, "instances", run)
	return &marker{
		ids: chance.Uint64, priority: func() uint64 { return chance.Uint64N(uint64(len(priorities))) }, flavors: map[mark]inventory.Flavor{},
	}
}

func (m *marker) mark(i *inventory.Instance) {
	i.ID = fmt.Sprintf("%016x", m.ids())
	priority := priorities[m.priority()]
	if i.Preemptible {
		i.Flavor = m.flavor(i.Flavor.Resources, priority)
	}
}

// flavor returns a flavor whose price is one unit for each VCPU.
func (m *marker) flavor(r resource.Vector, priority string) inventory.Flavor {
	key := mark{r.VCPUs, r.MemoryMB, r.DiskGB, priority}
	f, known := m.flavors[key]
	if !known {
		f = inventory.Flavor{
			Name: fmt.Sprintf("spot-%d-%d-%s", r.VCPUs, r.MemoryMB, priority), Resources: r,
			ExtraSpecs: map[string]string{priceSpec: strconv.FormatInt(r.VCPUs, 10), prioritySpec: priority},
		}
		m.flavors[key] = f
	}
	return f
}

// close counts the instances that still run at the end.
func (c *cloud) close() {
	c.tally.advance(c.tally.until)
	for host := range c.states.Len() {
		instances := c.states.InstancesOn(host)
		for n := range instances {
			if one := &instances[n]; one.Preemptible {
				c.tally.live(c.tally.until, one, c.tally.finished)
			}
		}
	}
}
