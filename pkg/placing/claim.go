// SPDX-License-Identifier: Apache-2.0

package placing

import (
	"errors"
	"maps"
)

// Allocations are the amounts that a consumer has in Placement, by provider and
// resource class.
type Allocations map[string]map[string]int64

// Equal reports whether both contain the same amounts of the same providers.
func (a Allocations) Equal(b Allocations) bool {
	return maps.EqualFunc(a, b, func(x, y map[string]int64) bool { return maps.Equal(x, y) })
}

// WithSource returns the allocations of an instance during a move in which no migration has those
// of the source, such as an evacuation: a, plus target for the providers that are not in a
// (nova/scheduler/client/report.py _move_operation_alloc_request).
func (a Allocations) WithSource(target Allocations) Allocations {
	both := Allocations{}
	maps.Copy(both, target)
	maps.Copy(both, a)
	return both
}

// Add adds the amounts of more to a.
func (a Allocations) Add(more Allocations) {
	for provider, amounts := range more {
		if a[provider] == nil {
			a[provider] = map[string]int64{}
		}
		for class, amount := range amounts {
			a[provider][class] += amount
		}
	}
}

// Claim is the allocations that a consumer, which is an instance, has in Placement or should get.
type Claim struct {
	Consumer  string `json:"consumer"`
	ProjectID string `json:"project_id"`
	UserID    string `json:"user_id"`
	// Generation is the consumer's generation when it was last read; nil for a consumer without
	// allocations.
	Generation  *int64      `json:"generation"`
	Allocations Allocations `json:"allocations"`
	// Before is the allocations that the consumer had before; it gets them back when the claim is
	// released.
	Before Allocations `json:"before"`
}

// Granted reports whether the consumer got its present allocations, has, from the claim, and
// nothing has changed since: each change increments the generation (placement/objects/allocation.py
// _set_allocations). After a claim of nothing, it is enough that the consumer has nothing, whatever
// removed its allocations.
func (c Claim) Granted(has Claim) bool {
	if len(c.Allocations) == 0 {
		return has.Generation == nil
	}
	next := int64(1)
	if c.Generation != nil {
		next += *c.Generation
	}
	return has.Generation != nil && *has.Generation == next && has.Allocations.Equal(c.Allocations)
}

// The errors of claims that Placement did not grant. They have changed nothing.
var (
	// ErrUnsent is the error if Placement could not be reached.
	ErrUnsent = errors.New("Placement cannot be asked")
	// ErrConsumerChanged is the error if the generation of a consumer differs from that in its
	// claim: its allocations have changed since they were read.
	ErrConsumerChanged = errors.New("another has changed what the instance has in Placement")
	// ErrConcurrentUpdate is the error if too many claims change the same providers at the same
	// time.
	ErrConcurrentUpdate = errors.New("others claim resources of the same hosts at the same time")
)

// ErrNoCapacity is the error of claims for which a provider has no capacity, does not allow such
// amounts, or no longer exists.
type ErrNoCapacity struct {
	Provider string // empty if Placement does not name it
}

func (e *ErrNoCapacity) Error() string {
	if e.Provider == "" {
		return "there is no room for what is claimed"
	}
	return "provider " + e.Provider + " has no room for what is claimed"
}
