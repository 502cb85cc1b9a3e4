// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"

	"github.com/almanac-cloud/almanac/pkg/placing"
)

// Allocations implements claiming.Placement.
type Allocations struct{ Cloud *Cloud }

// Claim implements claiming.Placement.
func (a Allocations) Claim(_ context.Context, claims []placing.Claim) error {
	defer a.Cloud.enter()()
	return a.Cloud.placement.Grant(claims)
}

// AllocationsOf implements claiming.Placement.
func (a Allocations) AllocationsOf(_ context.Context, consumer string) (placing.Claim, error) {
	defer a.Cloud.enter()()
	return a.Cloud.placement.Of(consumer), nil
}

// Release implements claiming.Placement.
func (a Allocations) Release(_ context.Context, claims []placing.Claim) error {
	defer a.Cloud.enter()()
	return a.Cloud.placement.Release(claims)
}
