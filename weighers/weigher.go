// SPDX-License-Identifier: Apache-2.0

// Package weighers ranks hosts that can run a request. Weighers are named as in Nova or the papers;
// Rank adds them up as Nova does (nova/weights.py).
package weighers

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Weigher rates hosts for a request.
type Weigher interface {
	// Name returns the name as in weight_classes, Nova's or the papers'.
	Name() string
	// Weigh writes the raw weight of each of hosts, which are indices in s in ascending order,
	// into raw at the same index. Larger is better, before multiplication. A raw weight is
	// finite and does not depend on the other hosts, except that the worst of many may count as
	// equal.
	Weigh(s *inventory.States, r *placing.Request, now span.Instant, hosts []int, raw []float64)
}

// based is a weigher whose raw weights depend on more than the host, the request and the instant.
type based interface {
	// Basis identifies what else they depend on. With an equal Basis that is not nil, a host that
	// has not changed has the same raw weight, also beside other hosts.
	Basis(s *inventory.States, r *placing.Request, now span.Instant) any
}

// hostAlone is the basis of raw weights that depend on nothing else.
type hostAlone struct{}

// basis returns the Basis of the weigher.
func (w *Weighted) basis(s *inventory.States, r *placing.Request, now span.Instant) any {
	if b, is := w.Weigher.(based); is {
		return b.Basis(s, r, now)
	}
	return hostAlone{}
}

// indifferent is a weigher that can report that all hosts have the same raw weight for a
// request. Without Min and Max it then adds nothing and does not run. The report depends on the request
// and on what no placement changes.
type indifferent interface {
	Indifferent(s *inventory.States, r *placing.Request) bool
}

// Weighted is a weigher with its multiplier.
type Weighted struct {
	Weigher
	// Part is the part of Nova that the weigher stands for: it does not count beside a release
	// of Nova that lacks it.
	Part       release.Part
	Multiplier float64
	// Option is the metadata key with which aggregates override Multiplier on their hosts, such as
	// "ram_weight_multiplier"; empty means none.
	Option string
	// Negated reverses the sign of the multiplier, even if an aggregate sets it
	// (nova/scheduler/weights/compute.py).
	Negated bool
	// OffAtZero means that a Multiplier of 0 disables the weigher, even if aggregates set one
	// (nova/scheduler/weights/image_props.py).
	OffAtZero bool
	// Min and Max, if not nil, bound the raw weights (minval and maxval of nova/weights.py
	// BaseWeigher).
	Min, Max *float64
}
