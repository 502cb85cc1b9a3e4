// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// cloud is a set of hosts on a Timeline. The service's scheduler places the instances that a stream
// requests. Decisions take effect at once: an instance runs as soon as it is placed, and a victim
// is gone as soon as it is chosen.
type cloud struct {
	timeline *sim.Timeline
	pipeline *scheduler.Pipeline
	draw     func(n int) int
	states   *inventory.States
	tally    *tally
	// mark sets the id and the flavor of an instance, which are random.
	mark func(*inventory.Instance)
	// refuses is true if requests for preemptible instances are dropped.
	refuses bool
	// watch receives each plan with the states that it was made from, and each end of an instance;
	// nil means no call. Tests count again with it.
	watch func(*event) error

	running map[string]int // indexes of hosts by the id of the instance
}

// event is a plan, or the end of an instance, in a cloud.
type event struct {
	at      span.Instant
	before  *inventory.States
	request *placing.Request // nil at an end
	plan    scheduler.Plan
	placed  *inventory.Instance // nil at an end, and if the request was refused
	ended   *inventory.Instance // nil except at an end
}

// newCloud returns a cloud of empty hosts.
func newCloud(t *sim.Timeline, hosts []inventory.Host, host resource.Vector) (*cloud, error) {
	rows := make([]inventory.HostState, len(hosts))
	for i, h := range hosts {
		rows[i] = inventory.HostState{Name: h.Name, Node: h.Name, Up: true, Enabled: true, Stocks: map[string]inventory.Stock{}}
		for class, amount := range amounts(host) {
			rows[i].Stocks[class] = inventory.Stock{Total: amount, Ratio: 1}
		}
	}
	states, err := inventory.NewStates(rows, nil)
	if err != nil {
		return nil, fmt.Errorf("make the hosts: %w", err)
	}
	return &cloud{timeline: t, states: states, running: map[string]int{}, mark: func(*inventory.Instance) {}}, nil
}

// amounts returns resources by Placement's resource classes, without classes of amount 0.
func amounts(v resource.Vector) map[string]int64 {
	all := map[string]int64{"VCPU": v.VCPUs, "MEMORY_MB": v.MemoryMB, "DISK_GB": v.DiskGB}
	maps.DeleteFunc(all, func(_ string, amount int64) bool { return amount == 0 })
	return all
}

// feed makes the machines of a stream arrive, one after the other, until it ends.
func (c *cloud) feed(from span.Instant, stream workload.Stream) error {
	j, err := stream.Next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the trace: %w", err)
	}
	c.timeline.At(from.Add(j.Submit), sim.Arriving, func() error {
		if err := c.arrive(j); err != nil {
			return err
		}
		return c.feed(from, stream)
	})
	return nil
}

// arrive places one virtual machine, or refuses it.
func (c *cloud) arrive(j workload.Job) error {
	now := c.timeline.Now()
	one := inventory.Instance{
		ID: j.ID, ProjectID: j.User, Status: "ACTIVE", Created: now, Launched: now, Preemptible: j.Preemptible,
		Holds: amounts(j.Shape), Flavor: inventory.Flavor{Resources: j.Shape},
	}
	c.mark(&one)
	if c.refuses && one.Preemptible {
		return nil
	}
	request := &placing.Request{
		ID: "req-" + one.ID, ProjectID: j.User, Instances: []string{one.ID}, Preemptible: one.Preemptible, Resources: one.Holds,
		FlavorName: one.Flavor.Name, ExtraSpecs: one.Flavor.ExtraSpecs,
	}
	e := event{at: now, before: c.states, request: request, plan: c.pipeline.Plan(c.states, request, now, c.draw)}
	if len(e.plan.Picks) == 0 {
		c.tally.refused(now, &one)
		return c.tell(&e)
	}
	c.apply(&e, &one)
	c.timeline.After(j.Runtime, sim.Ending, func() error { return c.end(one.ID) })
	return c.tell(&e)
}

// apply carries out a plan: it removes the victims and starts the instance.
func (c *cloud) apply(e *event, one *inventory.Instance) {
	pick := &e.plan.Picks[0]
	c.tally.placed(e.at, one, len(pick.Victims.Instances))
	for _, victim := range pick.Victims.Instances {
		c.tally.gone(e.at, victim)
		delete(c.running, victim.ID)
	}
	host := pick.Take.Host
	one.Host = c.states.Host(host).Name
	c.states = c.states.WithTaken([]inventory.Take{pick.Take})
	row := *c.states.Host(host)
	row.IOOps = 0 // it is running already
	row.Instances = slices.Clone(row.Instances)
	row.Instances[len(row.Instances)-1] = *one
	c.states = c.states.WithHostRead(host, row)
	c.running[one.ID] = host
	e.placed = one
}

// end removes an instance from its host unless it has been evicted.
func (c *cloud) end(id string) error {
	host, runs := c.running[id]
	if !runs {
		return nil
	}
	delete(c.running, id)
	row := *c.states.Host(host)
	at := slices.IndexFunc(row.Instances, func(i inventory.Instance) bool { return i.ID == id })
	one := row.Instances[at]
	row.Stocks = maps.Clone(row.Stocks)
	for class, amount := range one.Holds {
		stock := row.Stocks[class]
		stock.Used -= amount
		row.Stocks[class] = stock
	}
	row.Instances = slices.Delete(slices.Clone(row.Instances), at, at+1)
	e := event{at: c.timeline.Now(), before: c.states, ended: &one}
	c.tally.left(e.at, &one)
	c.states = c.states.WithHostRead(host, row)
	return c.tell(&e)
}

func (c *cloud) tell(e *event) error {
	if c.watch == nil {
		return nil
	}
	return c.watch(e)
}
