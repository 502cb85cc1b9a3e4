// SPDX-License-Identifier: Apache-2.0

// Package memory is a model of Placement's allocations: transactions, generations of consumers, and
// capacity. The simulated cloud and tests use it.
package memory

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// Placement has the allocations of consumers. Its callers lock it.
type Placement struct {
	// Consumers are the consumers that have allocations, by their ids.
	Consumers map[string]placing.Claim
	// Strays are consumers without allocations whose first claim was broken off: they exist, with
	// generation 0.
	Strays map[string]bool
	// Stock returns the inventory that a provider has of a resource class, without its use; ok is
	// false if it has none.
	Stock func(provider, class string) (stock inventory.Stock, ok bool)
}

// Grant carries out claims in one transaction. It fails with placing.ErrConsumerChanged or a
// *placing.ErrNoCapacity, and has changed nothing then (placement/objects/allocation.py
// _set_allocations).
func (p *Placement) Grant(claims []placing.Claim) error {
	for _, claim := range claims {
		if p.changed(claim) {
			return fmt.Errorf("%w: %w", placing.ErrConsumerChanged, fault.New(fault.Conflict, "refused"))
		}
	}
	was := maps.Clone(p.Consumers)
	for _, claim := range claims {
		generation := int64(1)
		if claim.Generation != nil {
			generation = *claim.Generation + 1
		}
		claim.Generation = &generation
		if p.Consumers[claim.Consumer] = claim; len(claim.Allocations) == 0 {
			delete(p.Consumers, claim.Consumer)
		}
	}
	if provider, full := p.exceeded(claims); full {
		p.Consumers = was
		return fmt.Errorf("%w: %w", &placing.ErrNoCapacity{Provider: provider}, fault.New(fault.Conflict, "refused"))
	}
	for _, claim := range claims {
		delete(p.Strays, claim.Consumer)
	}
	return nil
}

// changed reports whether the consumer of a claim has another generation than the claim states.
func (p *Placement) changed(claim placing.Claim) bool {
	has, exists := p.Consumers[claim.Consumer]
	switch {
	case exists:
		return claim.Generation == nil || *claim.Generation != *has.Generation
	case p.Strays[claim.Consumer]:
		return claim.Generation == nil || *claim.Generation != 0
	}
	return claim.Generation != nil
}

// exceeded returns the first provider whose inventory does not allow what the claims have of it.
func (p *Placement) exceeded(claims []placing.Claim) (provider string, full bool) {
	for _, claim := range claims {
		for _, provider := range slices.Sorted(maps.Keys(claim.Allocations)) {
			for class, amount := range claim.Allocations[provider] {
				if amount > 0 && !p.allows(provider, class, amount) {
					return provider, true
				}
			}
		}
	}
	return "", false
}

// allows reports whether Placement would accept a claim of amount: the provider has the class, the
// amount keeps its bounds and step, and what is used, amount included, is within the limit.
func (p *Placement) allows(provider, class string, amount int64) bool {
	s, ok := p.Stock(provider, class)
	if !ok || amount < s.Min || s.Max > 0 && amount > s.Max || amount%cmp.Or(s.Step, 1) != 0 {
		return false
	}
	return p.Used(provider, class) <= s.Limit()
}

// Used returns the amount that all consumers have of a provider.
func (p *Placement) Used(provider, class string) (sum int64) {
	for _, claim := range p.Consumers {
		sum += claim.Allocations[provider][class]
	}
	return sum
}

// Of returns the allocations of a consumer; without a Generation if it has none.
func (p *Placement) Of(consumer string) placing.Claim {
	has, exists := p.Consumers[consumer]
	if !exists {
		return placing.Claim{Consumer: consumer}
	}
	has.Before = nil
	return has
}

// On returns the amounts that each consumer has of a provider, by its id and by resource class.
func (p *Placement) On(provider string) map[string]map[string]int64 {
	all := map[string]map[string]int64{}
	for consumer, claim := range p.Consumers {
		if amounts := claim.Allocations[provider]; len(amounts) > 0 {
			all[consumer] = amounts
		}
	}
	return all
}

// ByProvider returns the amounts that each consumer has of each provider, by the id of the provider,
// the id of the consumer and the resource class.
func (p *Placement) ByProvider() map[string]map[string]map[string]int64 {
	all := map[string]map[string]map[string]int64{}
	for consumer, claim := range p.Consumers {
		for provider, amounts := range claim.Allocations {
			if all[provider] == nil {
				all[provider] = map[string]map[string]int64{}
			}
			all[provider][consumer] = amounts
		}
	}
	return all
}

// Release restores the allocations that consumers had before their claims. It skips consumers that
// have changed since.
func (p *Placement) Release(claims []placing.Claim) error {
	for _, claim := range claims {
		has, exists := p.Consumers[claim.Consumer]
		if !exists || !claim.Granted(has) {
			continue
		}
		has.Allocations = claim.Before
		if err := p.Grant([]placing.Claim{has}); err != nil {
			return err
		}
	}
	return nil
}
