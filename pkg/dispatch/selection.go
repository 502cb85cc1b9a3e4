// SPDX-License-Identifier: Apache-2.0

package dispatch

import (
	"encoding/json"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/claiming"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/scheduler"
)

// Placed is the result of a request: the hosts of its instances, and its claims.
type Placed struct {
	// Selections are the hosts for each instance, in the order of the instances: first the chosen
	// host, then the alternates.
	Selections [][]Selection
	claims     []placing.Claim
}

// Selection is a host for an instance, as in Nova (nova/objects/selection.py).
type Selection struct {
	Host *inventory.HostState
	// Allocations are the allocations of the instance on the host, or those that it would have on
	// an alternate; nil if nothing is claimed, as for a rebuild.
	Allocations placing.Allocations
}

// AllocationRequest returns the Allocations in the form of a Selection in Nova: JSON of version
// 1.36 of Placement, or "null".
func (s Selection) AllocationRequest() (string, error) {
	if s.Allocations == nil {
		return "null", nil
	}
	type object = map[string]any
	allocations, providers := object{}, []string{}
	for provider, amounts := range s.Allocations {
		allocations[provider] = object{"resources": amounts}
		providers = append(providers, provider)
	}
	slices.Sort(providers)
	text, err := json.Marshal(object{"allocations": allocations, "mappings": object{"": providers}})
	return string(text), err
}

// selected returns the chosen host and the alternates of a pick, in this order, each with the
// allocations that a claim there needs.
func selected(states *inventory.States, pick scheduler.Pick) []Selection {
	selections := make([]Selection, 0, 1+len(pick.Alternates))
	for _, host := range append([]int{pick.Take.Host}, pick.Alternates...) {
		h := states.Host(host)
		selections = append(selections, Selection{Host: h, Allocations: claiming.AllocationsOn(h, pick.Take.Resources)})
	}
	return selections
}
