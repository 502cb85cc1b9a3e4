// SPDX-License-Identifier: Apache-2.0

package scheduler_test

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// naive places instances one host and one number at a time, with Nova's default filters. Its
// weighers are CPU, memory, disk, operations, build failures and soft server groups; it orders
// equal hosts by name.
type naive struct {
	hosts []*naiveHost // by name
}

type naiveHost struct {
	inventory.HostState
	members int  // of the request's server group
	last    bool // the last instance of the request is on it
}

func newNaive(rows []inventory.HostState, r *placing.Request) *naive {
	n := &naive{}
	for _, row := range rows {
		h := &naiveHost{HostState: row}
		h.Stocks = map[string]inventory.Stock{}
		for class, stock := range row.Stocks {
			h.Stocks[class] = stock
		}
		for _, i := range row.Instances {
			if r.Group != nil && slices.Contains(r.Group.Members, i.ID) {
				h.members++
			}
		}
		n.hosts = append(n.hosts, h)
	}
	slices.SortFunc(n.hosts, func(a, b *naiveHost) int { return cmp.Compare(a.Name, b.Name) })
	return n
}

func (h *naiveHost) holds(r *placing.Request, groupHosts []string) bool {
	for class, amount := range r.Resources {
		if stock := h.Stocks[class]; amount > 0 && stock.Used+amount > int64(float64(stock.Total-stock.Reserved)*stock.Ratio) {
			return false
		}
	}
	for _, trait := range r.Required {
		if !slices.Contains(h.Traits, trait) {
			return false
		}
	}
	if slices.Contains(h.Traits, "COMPUTE_STATUS_DISABLED") || slices.Contains(r.IgnoreHosts, h.Name) {
		return false
	}
	if len(r.ForceHosts) > 0 {
		return slices.Contains(r.ForceHosts, h.Name)
	}
	switch {
	case !h.Up || !h.Enabled:
		return false
	case r.Group != nil && r.Group.Policy == "affinity":
		return len(groupHosts) == 0 || slices.Contains(groupHosts, h.Name)
	case r.Group != nil && r.Group.Policy == "anti-affinity":
		return h.last || h.members < max(1, r.Group.MaxPerHost)
	}
	return true
}

// sorted returns the hosts that can hold an instance, the best first.
func (n *naive) sorted(hosts []*naiveHost, r *placing.Request, groupHosts []string) []*naiveHost {
	var left []*naiveHost
	for _, h := range hosts {
		if h.holds(r, groupHosts) {
			left = append(left, h)
		}
	}
	weights := map[*naiveHost]float64{}
	if len(left) > 1 {
		for _, w := range []struct {
			multiplier float64
			raw        func(h *naiveHost) float64
			fromZero   bool
		}{
			{1, func(h *naiveHost) float64 {
				s := h.Stocks["VCPU"]
				return float64(float64(s.Total)*s.Ratio) - float64(s.Reserved) - float64(s.Used)
			}, true},
			{1, func(h *naiveHost) float64 { s := h.Stocks["MEMORY_MB"]; return float64(s.Total - s.Reserved - s.Used) }, true},
			{1, func(h *naiveHost) float64 {
				s := h.Stocks["DISK_GB"]
				return 1024 * float64(s.Total-s.Reserved-s.Used)
			}, true},
			{-1, func(h *naiveHost) float64 { return float64(h.IOOps) }, true},
			{-1e6, func(h *naiveHost) float64 { return float64(h.FailedBuilds) }, false},
			{1, func(h *naiveHost) float64 { return soft(r) * float64(h.members) }, false},
		} {
			var raw []float64
			for _, h := range left {
				x := w.raw(h)
				if w.fromZero && x < 0 {
					x = 0
				}
				raw = append(raw, x)
			}
			low, high := slices.Min(raw), slices.Max(raw)
			if w.fromZero {
				low = 0
			}
			for i, h := range left {
				if low != high {
					weights[h] += float64(w.multiplier * ((raw[i] - low) / (high - low)))
				}
			}
		}
	}
	slices.SortStableFunc(left, func(a, b *naiveHost) int {
		return cmp.Or(cmp.Compare(weights[b], weights[a]), cmp.Compare(a.Name, b.Name))
	})
	return left
}

// soft returns 1 if the request's group wants its members on the same host, and -1 if it does
// not.
func soft(r *placing.Request) float64 {
	switch {
	case r.Group != nil && r.Group.Policy == "soft-affinity":
		return 1
	case r.Group != nil && r.Group.Policy == "soft-anti-affinity":
		return -1
	}
	return 0
}

// plan returns the host of each instance and its alternates, by name; nil if an instance has no
// host.
func (n *naive) plan(r *placing.Request) (placements []placing.Placement) {
	var groupHosts []string
	if r.Group != nil {
		groupHosts = slices.Clone(r.Group.Hosts)
	}
	hosts := n.hosts
	var chosen []*naiveHost
	for range r.Instances {
		hosts = n.sorted(hosts, r, groupHosts)
		if len(hosts) == 0 {
			return nil
		}
		best := hosts[0]
		for class, amount := range r.Resources {
			stock := best.Stocks[class]
			stock.Used += amount
			best.Stocks[class] = stock
		}
		best.IOOps++
		best.members++
		groupHosts = append(groupHosts, best.Name)
		chosen = append(chosen, best)
	}
	if len(chosen) > 1 { // for the last instance
		chosen[len(chosen)-1].last = true
		hosts = n.sorted(hosts, r, groupHosts)
	}
	for i, host := range chosen {
		p := placing.Placement{Instance: r.Instances[i], Host: host.Name, Node: host.Node}
		for _, h := range hosts {
			if len(p.Alternates) < r.Alternates && h.Cell == host.Cell && !slices.Contains(chosen, h) {
				p.Alternates = append(p.Alternates, h.Name)
			}
		}
		placements = append(placements, p)
	}
	return placements
}
