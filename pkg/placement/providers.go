// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"math"
	"slices"
)

// Provider is a resource provider. A compute node's provider has the node's UUID and name, and
// no parent.
type Provider struct {
	ID, Name string
	// Generation increases with every change of its inventories, traits and aggregates, and
	// with every new allocation.
	Generation int64
	// Parent is empty for the root of a tree, whose Root is its own ID.
	Parent, Root string
}

// Providers returns all resource providers (GET /resource_providers,
// placement/handlers/resource_provider.py).
func (c *Client) Providers(ctx context.Context) ([]Provider, error) {
	return c.providers(ctx, "list the resource providers", "resource_providers")
}

// providers returns the providers at a path of Placement.
func (c *Client) providers(ctx context.Context, doing, path string) ([]Provider, error) {
	var body struct {
		Providers []struct {
			UUID, Name string
			Generation *int64
			Parent     *string `json:"parent_provider_uuid"`
			Root       string  `json:"root_provider_uuid"`
		} `json:"resource_providers"`
	}
	if err := c.service.Get(ctx, doing, path, &body); err != nil {
		return nil, err
	}
	if body.Providers == nil {
		return nil, c.service.Malformed(doing, "it contains no list of providers")
	}
	all := make([]Provider, 0, len(body.Providers))
	for _, p := range body.Providers {
		if p.UUID == "" || p.Name == "" || p.Generation == nil || p.Root == "" {
			return nil, c.service.Malformed(doing, "a provider has no uuid, name, generation or root")
		}
		one := Provider{ID: p.UUID, Name: p.Name, Generation: *p.Generation, Root: p.Root}
		if p.Parent != nil {
			one.Parent = *p.Parent
		}
		all = append(all, one)
	}
	return all, nil
}

// Inventory is a provider's inventory of one resource class.
type Inventory struct {
	Total, Reserved int64
	// Ratio is allocation_ratio: how often each unit may be allocated. Placement also accepts 0
	// and negative ratios, with which nothing can be allocated.
	Ratio float64
	// MinUnit, MaxUnit and StepSize restrict the amount of one consumer: between the first two,
	// and a multiple of the third. 0 is unset: 1, any, and 1.
	MinUnit, MaxUnit, StepSize int64
}

// Sold returns the amount that Placement allocates: overcommitted if Ratio is above 1
// (placement/objects/inventory.py, capacity).
func (i Inventory) Sold() int64 { return int64(float64(i.Total-i.Reserved) * max(0, i.Ratio)) }

// Real returns the amount without overcommitment.
func (i Inventory) Real() int64 {
	return int64(float64(i.Total-i.Reserved) * min(1, max(0, i.Ratio)))
}

// mostOfAny is more of a resource class than a provider may have
// (placement/db/constants.py, MAX_INT).
const mostOfAny = math.MaxInt32

func (i Inventory) possible() bool {
	return 0 <= i.Reserved && i.Reserved <= i.Total && i.Total <= mostOfAny && i.Ratio <= math.MaxFloat32 &&
		0 <= i.MinUnit && 0 <= i.MaxUnit && 0 <= i.StepSize
}

// Inventories returns the inventories of a provider, by resource class (GET
// /resource_providers/{id}/inventories, placement/handlers/inventory.py).
func (c *Client) Inventories(ctx context.Context, provider string) (map[string]Inventory, error) {
	doing := "read the inventories of provider " + provider
	var body struct {
		Inventories map[string]struct {
			Total, Reserved *int64
			Ratio           *float64 `json:"allocation_ratio"`
			MinUnit         int64    `json:"min_unit"`
			MaxUnit         int64    `json:"max_unit"`
			StepSize        int64    `json:"step_size"`
		} `json:"inventories"`
	}
	if err := c.service.Get(ctx, doing, "resource_providers/"+provider+"/inventories", &body); err != nil {
		return nil, err
	}
	if body.Inventories == nil {
		return nil, c.service.Malformed(doing, "it contains no inventories")
	}
	all := make(map[string]Inventory, len(body.Inventories))
	for class, i := range body.Inventories {
		if i.Total == nil || i.Reserved == nil || i.Ratio == nil {
			return nil, c.service.Malformed(doing, "%s has no total, reserved or allocation_ratio", class)
		}
		one := Inventory{
			Total: *i.Total, Reserved: *i.Reserved, Ratio: *i.Ratio, MinUnit: i.MinUnit, MaxUnit: i.MaxUnit, StepSize: i.StepSize,
		}
		if !one.possible() {
			return nil, c.service.Malformed(doing, "%s has an impossible amount", class)
		}
		all[class] = one
	}
	return all, nil
}

// Usages returns the used amounts of a provider, by resource class (GET
// /resource_providers/{id}/usages, placement/handlers/usage.py).
func (c *Client) Usages(ctx context.Context, provider string) (map[string]int64, error) {
	doing := "read the usages of provider " + provider
	var body struct{ Usages map[string]int64 }
	if err := c.service.Get(ctx, doing, "resource_providers/"+provider+"/usages", &body); err != nil {
		return nil, err
	}
	if body.Usages == nil {
		return nil, c.service.Malformed(doing, "it contains no usages")
	}
	for class, used := range body.Usages {
		if used < 0 {
			return nil, c.service.Malformed(doing, "the usage of %s is negative", class)
		}
	}
	return body.Usages, nil
}

// Traits returns the traits of a provider, sorted (GET /resource_providers/{id}/traits,
// placement/handlers/trait.py).
func (c *Client) Traits(ctx context.Context, provider string) ([]string, error) {
	doing := "read the traits of provider " + provider
	var body struct{ Traits []string }
	if err := c.service.Get(ctx, doing, "resource_providers/"+provider+"/traits", &body); err != nil {
		return nil, err
	}
	if body.Traits == nil {
		return nil, c.service.Malformed(doing, "it contains no traits")
	}
	slices.Sort(body.Traits)
	return body.Traits, nil
}

// Allocations returns the allocations of each consumer, an instance or a migration, from a
// provider, by the consumer's id and resource class (GET /resource_providers/{id}/allocations,
// placement/handlers/allocation.py).
func (c *Client) Allocations(ctx context.Context, provider string) (map[string]map[string]int64, error) {
	doing := "read the allocations of provider " + provider
	var body struct {
		Allocations map[string]struct{ Resources map[string]int64 }
	}
	if err := c.service.Get(ctx, doing, "resource_providers/"+provider+"/allocations", &body); err != nil {
		return nil, err
	}
	if body.Allocations == nil {
		return nil, c.service.Malformed(doing, "it contains no allocations")
	}
	all := make(map[string]map[string]int64, len(body.Allocations))
	for consumer, a := range body.Allocations {
		if len(a.Resources) == 0 {
			return nil, c.service.Malformed(doing, "consumer %s has no resources", consumer)
		}
		for class, amount := range a.Resources {
			if amount <= 0 {
				return nil, c.service.Malformed(doing, "consumer %s has no amount of %s", consumer, class)
			}
		}
		all[consumer] = a.Resources
	}
	return all, nil
}

// Summary is Placement's summary of a provider beside allocation candidates.
type Summary struct {
	// Sold and Used are by resource class: Inventory.Sold, and the used amount.
	Sold, Used map[string]int64
	Traits     []string // sorted
}

// Summaries returns the summaries of up to limit providers with a free VCPU, and of all
// providers in their trees, by id: one call instead of two for each provider (GET
// /allocation_candidates, placement/handlers/allocation_candidate.py). Providers that are full
// or have no VCPU are missing.
func (c *Client) Summaries(ctx context.Context, limit int) (map[string]Summary, error) {
	const doing = "read the summaries of the providers"
	var body struct {
		Summaries map[string]struct {
			Resources map[string]struct{ Capacity, Used *int64 }
			Traits    []string
		} `json:"provider_summaries"`
	}
	path := fmt.Sprintf("allocation_candidates?resources=VCPU:1&limit=%d", max(limit, 1))
	if err := c.service.Get(ctx, doing, path, &body); err != nil {
		return nil, err
	}
	if body.Summaries == nil {
		return nil, c.service.Malformed(doing, "it contains no provider_summaries")
	}
	all := make(map[string]Summary, len(body.Summaries))
	for id, s := range body.Summaries {
		if s.Resources == nil || s.Traits == nil {
			return nil, c.service.Malformed(doing, "provider %s has no resources or traits", id)
		}
		slices.Sort(s.Traits)
		one := Summary{Sold: make(map[string]int64), Used: make(map[string]int64), Traits: s.Traits}
		for class, amount := range s.Resources {
			if amount.Capacity == nil || amount.Used == nil || *amount.Used < 0 {
				return nil, c.service.Malformed(doing, "provider %s has an impossible amount of %s", id, class)
			}
			one.Sold[class], one.Used[class] = max(0, *amount.Capacity), *amount.Used
		}
		all[id] = one
	}
	return all, nil
}
