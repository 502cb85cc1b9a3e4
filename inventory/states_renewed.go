package inventory

import (
	"maps"
	"slices"
	"sync"
)

// Renewed gives the states after host i was read anew: its Stocks, Instances and IOOps are
// those of h. All else that is known of it stays as it was. What is in h belongs to the
// states from then on.
//
// A reading of the whole cloud makes new states; this is for who knows that nothing has
// happened but on one host, as a simulation does.
func (s *States) Renewed(i int, h HostState) *States {
	next := *s
	next.rows, next.columns, next.rare, next.made = slices.Clone(s.rows), maps.Clone(s.columns), maps.Clone(s.rare), new(sync.Map)
	row := *s.Host(i)
	row.Stocks, row.Instances, row.IOOps = h.Stocks, h.Instances, h.IOOps
	next.relay(s, i, &row, map[string]int{})
	next.ioOps = slices.Clone(s.ioOps)
	next.ioOps[i] = h.IOOps
	next.guests, next.received = &guests{rows: next.rows}, nil
	return &next
}
