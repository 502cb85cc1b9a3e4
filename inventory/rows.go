package inventory

import (
	"iter"
	"slices"
)

// rows are the hosts of States in pages, so that a change of one host copies few.
type rows [][]*HostState

const rowsOnPage = 128

func newRows(hosts []HostState) rows {
	r := make(rows, 0, (len(hosts)+rowsOnPage-1)/rowsOnPage)
	for i := range hosts {
		if i%rowsOnPage == 0 {
			r = append(r, make([]*HostState, 0, min(rowsOnPage, len(hosts)-i)))
		}
		page := &r[len(r)-1]
		*page = append(*page, &hosts[i])
	}
	return r
}

func (r rows) at(i int) *HostState { return r[i/rowsOnPage][i%rowsOnPage] }

// put replaces a host, in a copy of its page. r is a clone of before.
func (r rows) put(before rows, i int, h *HostState) {
	page := &r[i/rowsOnPage]
	if old := before[i/rowsOnPage]; &(*page)[0] == &old[0] {
		*page = slices.Clone(old)
	}
	(*page)[i%rowsOnPage] = h
}

func (r rows) all() iter.Seq2[int, *HostState] {
	return func(yield func(int, *HostState) bool) {
		for n, page := range r {
			for i, h := range page {
				if !yield(n*rowsOnPage+i, h) {
					return
				}
			}
		}
	}
}
