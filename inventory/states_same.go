package inventory

import "iter"

// SameHosts reports whether o is known to have the same hosts at the same indices, because both
// come from one NewStates. Results by index of one are then valid for the other.
func (s *States) SameHosts(o *States) bool { return o != nil && s.empty == o.empty }

// Changed iterates over the indices of the hosts that may differ between s and o, ascending.
// Both must come from one NewStates (SameHosts).
func (s *States) Changed(o *States) iter.Seq[int] {
	return func(yield func(int) bool) {
		for n, page := range s.rows {
			before := o.rows[n]
			if &page[0] == &before[0] {
				continue
			}
			for i, h := range page {
				if h != before[i] && !yield(n*rowsOnPage+i) {
					return
				}
			}
		}
	}
}
