// SPDX-License-Identifier: Apache-2.0

package weighers

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// CrossCellWeigher prefers the hosts of the instance's own cell, for an instance that may move
// to another cell (nova/scheduler/weights/cross_cell.py).
type CrossCellWeigher struct{}

func (CrossCellWeigher) Name() string { return "CrossCellWeigher" }

// Indifferent reports whether the request has no preferred cell.
func (CrossCellWeigher) Indifferent(_ *inventory.States, r *placing.Request) bool {
	return r.PreferredCell == ""
}

// Weigh sets 1 in the preferred cell, -1 in others, and 0 everywhere if none is preferred.
func (CrossCellWeigher) Weigh(s *inventory.States, r *placing.Request, _ span.Instant, hosts []int, raw []float64) {
	for k, i := range hosts {
		switch r.PreferredCell {
		case "":
			raw[k] = 0
		case s.Host(i).Cell:
			raw[k] = 1
		default:
			raw[k] = -1
		}
	}
}
