package inventory

import "iter"

// SameHosts says that o surely has the same hosts at the same places, since both come
// from one NewStates. What was gathered by place for the one is then good for the other.
func (s *States) SameHosts(o *States) bool { return o != nil && s.empty == o.empty }

// Changed walks the places of the hosts that are not surely the same in s and o, in
// ascending order. Both come from one NewStates (SameHosts).
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
