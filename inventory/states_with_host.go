// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"iter"
	"maps"
	"slices"
	"sync"
)

// WithHostRead returns the states after host i was read again: its Stocks, Instances and IOOps
// are those of h, everything else stays. The contents of h belong to the states from then on.
//
// A reading of the whole cloud makes new states. This is for callers that know that only one
// host has changed, such as a simulation.
func (s *States) WithHostRead(i int, h HostState) *States {
	row := *s.Host(i)
	row.Stocks, row.Instances, row.IOOps = h.Stocks, h.Instances, h.IOOps
	next := s.withRows(map[int]*HostState{i: &row})
	next.locations, next.received = &locations{rows: next.rows}, nil
	return next
}

// withRows returns the states with other rows of some hosts, by index. The rows differ from the
// old ones only in stocks, instances and operations.
func (s *States) withRows(rows map[int]*HostState) *States {
	if len(rows) == 0 {
		return s
	}
	next := *s
	next.rows, next.columns, next.rare, next.made = slices.Clone(s.rows), maps.Clone(s.columns), maps.Clone(s.rare), new(sync.Map)
	next.ioOps = slices.Clone(s.ioOps)
	own := map[string]int{} // how much of each class's column is no longer shared with s
	for i, h := range rows {
		next.replaceRow(s, i, h, own)
		next.ioOps[i] = h.IOOps
	}
	return &next
}

// replaceRow replaces the row of host i and updates its columns.
func (s *States) replaceRow(before *States, i int, h *HostState, own map[string]int) {
	stocks := s.Host(i).Stocks
	s.rows.put(before.rows, i, h)
	for class := range stocks {
		if _, still := h.Stocks[class]; !still {
			s.updateColumn(i, class, own)
		}
	}
	for class := range h.Stocks {
		s.updateColumn(i, class, own)
	}
}

// updateColumn writes the stock of host i into the column of a class.
func (s *States) updateColumn(i int, class string, own map[string]int) {
	c, dense := s.columns[class]
	if !dense {
		places := s.rare[class]
		at, listed := slices.BinarySearch(places, i)
		switch _, has := s.Host(i).Stocks[class]; {
		case has && !listed:
			s.rare[class] = slices.Insert(slices.Clone(places), at, i)
		case !has && listed:
			s.rare[class] = slices.Delete(slices.Clone(places), at, at+1)
		}
		return
	}
	stock, has := s.Host(i).Stocks[class]
	switch used := has && c.differsInUse(i, stock); {
	case own[class] >= whole, used && own[class] >= useOnly:
	case used:
		next := *c
		next.Used, next.Evictable = slices.Clone(c.Used), slices.Clone(c.Evictable)
		c, own[class] = &next, useOnly
	default:
		c, own[class] = c.clone(), whole
	}
	s.columns[class] = c
	if used := has && own[class] == useOnly; used {
		c.Used[i], c.Evictable[i] = stock.Used, s.Host(i).evictable(class)
	} else if has {
		c.set(i, stock, s.Host(i).evictable(class))
	} else {
		c.clear(i)
	}
}

// How much of a column is no longer shared with the states before.
const (
	useOnly = 1 + iota
	whole
)

// rows are the hosts of States in pages: a change of one host copies only its page.
type rows [][]*HostState

const rowsOnPage = 128

// newRows returns the hosts as pages of rows, so that a changed host copies one page.
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

// put replaces a host. It copies the page of the host if r, a clone of before, still shares it.
func (r rows) put(before rows, i int, h *HostState) {
	page := &r[i/rowsOnPage]
	if old := before[i/rowsOnPage]; &(*page)[0] == &old[0] {
		*page = slices.Clone(old)
	}
	(*page)[i%rowsOnPage] = h
}

// all returns all hosts with their places.
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
