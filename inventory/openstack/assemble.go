// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

// assemble returns the hosts of a cloud, sorted by name, and sentences for the log, sorted, about
// what it omitted.
func assemble(c *cloud, rule inventory.PreemptibleRule) (hosts []inventory.Host, notes []string) {
	services, trees := c.servicesByHost(), c.trees()
	instances := instancesByHost(c, rule)
	nodes, notes := single(c.hypervisors)
	for _, node := range nodes {
		h := inventory.Host{
			Name: node.Host, Provider: node.ID, Zone: services[node.Host].Zone, Instances: instances[node.Host],
			Hypervisor: inventory.Hypervisor{Name: node.Name, Type: node.Type, Version: node.Version},
		}
		h.InstanceCount = len(h.Instances)
		for _, p := range trees[node.ID] {
			c.holdings[p.ID].addTo(&h)
		}
		if c.preemptible[node.ID] {
			tree := c.held(trees[node.ID])
			of, _ := stocks(tree, c.shared[node.ID])
			setHolds(h.Instances, holds(tree, of))
		}
		slices.Sort(h.Traits)
		h.Traits = slices.Compact(h.Traits)
		service, there := services[node.Host]
		h.Problem = problem(service, there, len(trees[node.ID]) > 0, h.Capacity)
		hosts = append(hosts, h)
	}
	return hosts, slices.Sorted(slices.Values(append(notes, setAggregates(hosts, c.aggregates)...)))
}

// single returns the hypervisors of those hosts that have exactly one, sorted by host. Ironic's
// hypervisors are machines that are not hosts to Nova.
func single(hypervisors []nova.Hypervisor) (nodes []nova.Hypervisor, notes []string) {
	byHost := map[string][]nova.Hypervisor{}
	for _, h := range hypervisors {
		byHost[h.Host] = append(byHost[h.Host], h)
	}
	for _, host := range slices.Sorted(maps.Keys(byHost)) {
		switch list := byHost[host]; {
		case list[0].Type == "ironic":
			notes = append(notes, fmt.Sprintf("host %s is left out: its hypervisors are nodes of Ironic", host))
		case len(list) > 1:
			notes = append(notes, fmt.Sprintf("host %s is left out: it has %d hypervisors", host, len(list)))
		default:
			nodes = append(nodes, list[0])
		}
	}
	return nodes, notes
}

// instancesByHost returns the instances of the cloud by host, sorted by id.
func instancesByHost(c *cloud, rule inventory.PreemptibleRule) map[string][]inventory.Instance {
	byHost := map[string][]inventory.Instance{}
	for _, s := range c.servers {
		one := c.instance(s, rule)
		byHost[one.Host] = append(byHost[one.Host], one)
	}
	for _, list := range byHost {
		slices.SortFunc(list, func(a, b inventory.Instance) int { return cmp.Compare(a.ID, b.ID) })
	}
	return byHost
}

// setHolds sets the Holds of the preemptible instances.
func setHolds(instances []inventory.Instance, holds map[string]map[string]int64) {
	for i := range instances {
		if one := &instances[i]; one.Preemptible {
			one.Holds = holds[one.ID]
		}
	}
}

// addTo adds the inventories, usages and traits of a provider to the host.
func (k holding) addTo(h *inventory.Host) {
	counted := make(map[string]int64, len(k.inventories))
	for class, i := range k.inventories {
		counted[class] = i.Real()
	}
	h.Capacity = h.Capacity.Add(vector(counted))
	h.Used = h.Used.Add(vector(k.used))
	for _, trait := range k.traits {
		if !strings.HasPrefix(trait, fence.OwnPrefix) {
			h.Traits = append(h.Traits, trait)
		}
	}
}

// vector converts the amounts of those of Placement's resource classes that Almanac counts.
// Almanac's own classes and Blazar's stand for promises and are skipped.
func vector(amounts map[string]int64) resource.Vector {
	v := resource.Vector{
		VCPUs: amounts["VCPU"] + amounts["PCPU"], MemoryMB: amounts["MEMORY_MB"], DiskGB: amounts["DISK_GB"],
	}
	for class, n := range amounts {
		promises := strings.HasPrefix(class, fence.OwnPrefix) || strings.HasPrefix(class, fence.BlazarClass)
		if strings.HasPrefix(class, "CUSTOM_") && !promises && n > 0 {
			if v.Custom == nil {
				v.Custom = map[string]int64{}
			}
			v.Custom[class] = n
		}
	}
	return v
}

// problem returns the reason why a host accepts no instances.
func problem(s nova.Service, there, hasProvider bool, capacity resource.Vector) string {
	switch {
	case !there:
		return "it has no nova-compute"
	case s.ForcedDown:
		return "its nova-compute is forced down"
	case !s.Up:
		return "its nova-compute is down"
	case s.Disabled && s.Reason != "":
		return "it is disabled: " + s.Reason
	case s.Disabled:
		return "it is disabled"
	case !hasProvider:
		return "Placement does not know it"
	case capacity.VCPUs == 0 || capacity.MemoryMB == 0:
		return "Placement has no inventory of it"
	}
	return ""
}
