// SPDX-License-Identifier: Apache-2.0

package topic_test

import (
	"testing"

	"github.com/almanac-cloud/almanac/pkg/nova/topic"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

func TestTheClaimsAndNotTheAggregatesTellTheHostsOfAReservation(t *testing.T) {
	here := &remembering{}
	specs := bound("shared")
	if _, err := serve(t, topic.Options{Placer: here, Over: overByName}).ask(t, args(t, nil, specs)); err != nil {
		t.Fatal(err)
	}
	if r := here.asked[0]; r.ExtraSpecs[fence.PoolSpec] != "" || r.ExtraSpecs["quota:cpu_shares"] != "10" {
		t.Errorf("the request is decided with the extra specs %v; AggregateInstanceExtraSpecsFilter would look for an aggregate that the states may not show yet", r.ExtraSpecs)
	}
}
