// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placement"
)

// show replaces the live states of the hosts; the reading began after mark. notes contains
// sentences about what is missing.
func (s *Source) show(ctx context.Context, mark inventory.ReadVersion, c *cloud, hosts []inventory.Host) (notes []string) {
	if s.options.Cells != nil {
		cells, err := s.options.Cells.Cells(ctx)
		if err == nil {
			s.cells = cells
		} else {
			notes = append(notes, fmt.Sprintf("keeping the previous cells of the hosts: %v", err))
		}
	}
	rows := hostStates(c, hosts, s.cells)
	s.options.Builds.apply(rows)
	states, err := inventory.NewStates(rows, c.aggregates)
	if err != nil {
		return append(notes, fmt.Sprintf("keeping the previous states of the hosts: %v", err))
	}
	s.options.LiveState.Replace(mark, states.WithNova(c.release), c.underWay)
	if s.options.Shown != nil {
		s.options.Shown(s.options.LiveState.Load())
	}
	return notes
}

// hostStates returns the states of hosts, which were assembled from c.
func hostStates(c *cloud, hosts []inventory.Host, cells map[string]string) []inventory.HostState {
	services, trees := c.servicesByHost(), c.trees()
	nodes := make(map[string]nova.Hypervisor, len(c.hypervisors))
	for _, node := range c.hypervisors {
		nodes[node.ID] = node
	}
	states := make([]inventory.HostState, len(hosts))
	for i := range hosts {
		h, node := &hosts[i], nodes[hosts[i].Provider]
		service, there := services[h.Name]
		state := inventory.HostState{
			Name: h.Name, Node: node.Name, Provider: h.Provider, Cell: cmp.Or(cells[h.Name], cells[""]), Zone: h.Zone, IP: node.IP,
			Up: service.Up, Enabled: there && !service.Disabled, DisabledReason: service.Reason,
			HypervisorType: node.Type, HypervisorVersion: node.Version, DiskMissing: node.DiskMissing,
			Instances: h.Instances, IOOps: heavy(h.Instances),
		}
		if len(cells) > 0 && state.Cell == "" && state.Enabled { // Nova cannot build there
			state.Enabled, state.DisabledReason = false, "nova-manage cell_v2 discover_hosts has not found it yet"
		}
		for _, p := range trees[h.Provider] {
			k := c.holdings[p.ID]
			state.Traits = append(state.Traits, k.traits...)
			if slices.Contains(k.traits, pciDevice) {
				state.PCIDevices += free(k)
			}
		}
		slices.Sort(state.Traits)
		state.Traits = slices.Compact(state.Traits)
		state.Stocks, state.Split = stocks(c.held(trees[h.Provider]), c.shared[h.Provider])
		states[i] = state
	}
	return states
}

// pciDevice is the trait of the providers of PCI devices
// (nova/compute/pci_placement_translator.py).
const pciDevice = "COMPUTE_MANAGED_PCI_DEVICE"

// free returns the total amount that a provider has left.
func free(k holding) (n int64) {
	for class, i := range k.inventories {
		n += max(0, i.Total-i.Reserved-k.used[class])
	}
	return n
}

// stocks returns the inventories of a provider tree, by resource class. split contains the classes
// that one stock cannot describe: two providers of the tree have some, or a sharing provider shares
// some with the host.
func stocks(tree []placement.Held, shared []string) (all map[string]inventory.Stock, split []string) {
	all, split = map[string]inventory.Stock{}, slices.Clone(shared)
	for _, p := range tree {
		for class, i := range p.Inventories {
			stock := inventory.Stock{
				Provider: p.ID, Total: i.Total, Reserved: i.Reserved, Ratio: i.Ratio, Used: p.Used[class],
				Min: i.MinUnit, Max: i.MaxUnit, Step: i.StepSize,
			}
			had, there := all[class]
			switch {
			case !there || had.Limit() == 0:
				all[class] = stock
			case stock.Limit() > 0:
				split = append(split, class)
			}
		}
	}
	slices.Sort(split)
	split = slices.Compact(split)
	for _, class := range split {
		delete(all, class)
	}
	return all, split
}

// holds returns, by the id of the consumer and by resource class, the allocations from the stocks
// of a tree. Allocations from providers other than that of a stock are left out.
func holds(tree []placement.Held, stocks map[string]inventory.Stock) map[string]map[string]int64 {
	holds := map[string]map[string]int64{}
	for _, p := range tree {
		for consumer, amounts := range p.Consumers {
			for class, amount := range amounts {
				if stocks[class].Provider != p.ID {
					continue
				}
				if holds[consumer] == nil {
					holds[consumer] = make(map[string]int64, len(amounts))
				}
				holds[consumer][class] = amount
			}
		}
	}
	return holds
}

// building is the status of an instance that has not run yet.
const building = "BUILD"

// heavyTasks are the tasks that count as heavy work (nova/compute/stats.py io_workload).
var heavyTasks = []string{
	"rebuilding", "resize_prep", "resize_migrating", "image_snapshot", "image_backup", "rescuing", "unshelving",
}

// heavy returns the number of heavy operations; an instance may count twice, for its status and for
// its task.
func heavy(instances []inventory.Instance) (n int64) {
	for i := range instances {
		if instances[i].Status == building {
			n++
		}
		if slices.Contains(heavyTasks, instances[i].Task) {
			n++
		}
	}
	return n
}

// mostLooks is the largest number of hosts that one Look reads.
const mostLooks = 32

// looksAtOnce is the largest number of concurrent reads of hosts.
const looksAtOnce = 4

// Look reads the stocks of the first 32 of these hosts and their consumers again and corrects
// LiveState, by three calls for a host and two more for each child of its provider. It ignores
// unknown hosts. It returns the errors of placement.Client.Tree.
func (s *Source) Look(ctx context.Context, hosts []string) error {
	if s.options.LiveState == nil {
		return nil
	}
	states := s.options.LiveState.Load()
	if states == nil {
		return nil
	}
	looks, ctx := errgroup.WithContext(ctx)
	looks.SetLimit(looksAtOnce)
	for _, name := range hosts[:min(len(hosts), mostLooks)] {
		i, there := states.Index(name)
		if !there {
			continue
		}
		h := states.Host(i)
		looks.Go(func() error {
			mark := s.options.LiveState.BeginRead()
			tree, err := s.placement.Tree(ctx, h.Provider)
			if err != nil {
				return fmt.Errorf("read host %s: %w", h.Name, err)
			}
			all, _ := stocks(tree, h.Split)
			s.options.LiveState.CorrectHost(mark, h.Name, all, holds(tree, all))
			return nil
		})
	}
	return looks.Wait()
}
