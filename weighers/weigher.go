// Package weighers ranks hosts that may hold a request. Each weigher has a file, named
// as Nova or the papers name it; Rank adds them up as Nova does (nova/weights.py).
package weighers

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Weigher says how good hosts are for a request.
type Weigher interface {
	// Name is Nova's or the papers', as in weight_classes.
	Name() string
	// Weigh puts the raw weight of each of hosts, which are places in s in ascending order,
	// into raw at the same place. The larger the better, before multiplication. A raw
	// weight is finite, and does not depend on which other hosts there are, but that the
	// worst of many may count as equal.
	Weigh(s *inventory.States, r *placing.Request, now span.Instant, hosts []int, raw []float64)
}

// indifferent is a weigher that can tell that it gives all hosts the same raw weight for
// a request. Where it has neither Min nor Max it adds nothing then, and is not asked.
type indifferent interface {
	Indifferent(s *inventory.States, r *placing.Request) bool
}

// Weighted is a weigher with how much it counts.
type Weighted struct {
	Weigher
	Multiplier float64
	// Option is the key of the metadata of aggregates that overrides Multiplier on their
	// hosts, such as "ram_weight_multiplier"; empty is none.
	Option string
	// Negated says that the multiplier counts with the other sign, wherever it comes from
	// (nova/scheduler/weights/compute.py).
	Negated bool
	// OffAtZero says that a Multiplier of 0 turns it off, whatever aggregates say
	// (nova/scheduler/weights/image_props.py).
	OffAtZero bool
	// Min and Max, where they are not nil, bound the raw weights' range from outside
	// (minval and maxval of nova/weights.py BaseWeigher).
	Min, Max *float64
}
