// SPDX-License-Identifier: Apache-2.0

package dispatch_test

import (
	"context"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/tracing"
	"github.com/almanac-cloud/almanac/tests/cloudtest"
	"github.com/almanac-cloud/almanac/tests/tracingtest"
)

func TestAPlacementIsAStepWithItsChoiceAndItsClaim(t *testing.T) {
	collector := tracingtest.New(t)
	collector.Within(t, func(ctx context.Context, _ *tracing.Tracer) {
		if _, err := cloudtest.New(t, cloudtest.NewCloud(4), cloudtest.Never).Place(ctx, cloudtest.Request(1, "one")); err != nil {
			t.Error(err)
		}
	})
	place := collector.Named(t, "place")
	if place.Parent != collector.Named(t, "test").ID || place.Facts["instances"] != "1" {
		t.Errorf("got %+v", place)
	}
	if choice, claim := collector.Named(t, "choose hosts"), collector.Named(t, "claim"); choice.Parent != place.ID || claim.Parent != place.ID {
		t.Errorf("the choice %+v and the claim %+v do not follow from %+v", choice, claim, place)
	}
}
