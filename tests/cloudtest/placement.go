// SPDX-License-Identifier: Apache-2.0

package cloudtest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/claiming/memory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// Kept are the decisions of a Bench.
type Kept []placing.Decision

func (k *Kept) Keep(d placing.Decision) { *k = append(*k, d) }

// Model is a model of Placement and Nova.
type Model struct {
	memory.Placement
	Limit   map[string]int64  // VCPU, by provider
	Least   int64             // that a consumer can have of them
	late    [][]placing.Claim // claims to carry out later, before any release at the latest
	At      time.Time         // now
	Calls   []string
	Servers map[string]*Server // of Nova
	Passes  func(time.Duration)
	// Fate returns the fate of the next call of a name: claim, read, release, look, server, warn
	// or leave.
	Fate func(call string) Fate
}

// Fate is what happens to a call.
type Fate int

// The fates of calls.
const (
	Fine   Fate = iota
	Unsent      // not done, as the caller knows
	Before      // not done, and no answer
	After       // done, and no answer
	Later       // done later, and no answer
)

// NewCloud returns a cloud with a host for each limit of VCPU.
func NewCloud(limits ...int64) *Model {
	c := &Model{
		Limit: map[string]int64{}, Placement: memory.Placement{Consumers: map[string]placing.Claim{}, Strays: map[string]bool{}},
		At: time.Unix(1_900_000_000, 0), Fate: func(string) Fate { return Fine },
		Servers: map[string]*Server{}, Passes: func(time.Duration) {},
	}
	for i, limit := range limits {
		c.Limit[Provider(i)] = limit
	}
	c.Stock = func(provider, class string) (inventory.Stock, bool) {
		limit, known := c.Limit[provider]
		return inventory.Stock{Provider: provider, Total: limit, Ratio: 1, Min: c.Least}, known && class == "VCPU"
	}
	return c
}

// Provider returns the id of the provider of host i.
func Provider(i int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", i) }

// Host returns the name of host i.
func Host(i int) string { return fmt.Sprintf("cmp-%03d", i) }

// Away is the error of a call that is not Fine.
var Away = fault.New(fault.Unavailable, "placement does not answer")

// Call notes a call and returns its fate.
func (c *Model) Call(call string) Fate {
	c.Calls = append(c.Calls, call)
	return c.Fate(call)
}

// Claim implements claiming.Placement.
func (c *Model) Claim(ctx context.Context, claims []placing.Claim) error {
	switch c.Call("claim") {
	case Unsent:
		return fmt.Errorf("%w: %w", placing.ErrUnsent, Away)
	case Before:
		return Away
	case Later:
		c.late = append(c.late, slices.Clone(claims))
		return Away
	case After:
		if err := c.Grant(claims); err != nil {
			return err
		}
		return Away
	}
	return c.Grant(claims)
}

// Used returns the VCPU that all consumers have of a provider.
func (c *Model) Used(provider string) int64 { return c.Placement.Used(provider, "VCPU") }

// AllocationsOf implements claiming.Placement.
func (c *Model) AllocationsOf(_ context.Context, consumer string) (placing.Claim, error) {
	if c.Call("read") != Fine {
		return placing.Claim{}, Away
	}
	return c.Of(consumer), nil
}

// Release implements claiming.Placement.
func (c *Model) Release(_ context.Context, claims []placing.Claim) error {
	fate := c.Call("release")
	if fate == Unsent || fate == Before || fate == Later {
		return Away
	}
	c.CarryOut()
	if err := c.Placement.Release(claims); err != nil {
		return err
	}
	if fate == After {
		return Away
	}
	return nil
}

// CarryOut carries out the claims whose fate was Later.
func (c *Model) CarryOut() {
	for _, claims := range c.late {
		_ = c.Grant(claims) // it may be too late for them
	}
	c.late = nil
}

// Allocate adds an allocation of another provider to a consumer.
func (c *Model) Allocate(consumer, provider string, vcpus int64) {
	claim := c.Consumers[consumer]
	claim.Allocations = claim.Allocations.WithSource(placing.Allocations{provider: {"VCPU": vcpus}})
	c.Consumers[consumer] = claim
}
