// SPDX-License-Identifier: Apache-2.0

package besteffort

import "github.com/almanac-cloud/almanac/pkg/span"

// agenda is a heap of entries: the first has the least instant, and among these the least n.
type agenda []entry

// entry is a part of the tree of openings with its first node n, or a step by n places.
type entry struct {
	at      span.Instant
	n, part int
}

func (e *entry) before(o *entry) bool { return e.at < o.at || e.at == o.at && e.n < o.n }

func (a *agenda) add(e entry) {
	*a = append(*a, e)
	list := *a
	for i := len(list) - 1; i > 0; {
		parent := (i - 1) / 2
		if !e.before(&list[parent]) {
			return
		}
		list[i], list[parent] = list[parent], e
		i = parent
	}
}

// remove removes the first entry, and returns it.
func (a *agenda) remove() entry {
	list := *a
	first, last := list[0], list[len(list)-1]
	list = list[:len(list)-1]
	*a = list
	for i := 0; i < len(list); {
		child := 2*i + 1
		if child+1 < len(list) && list[child+1].before(&list[child]) {
			child++
		}
		if child >= len(list) || !list[child].before(&last) {
			list[i] = last
			break
		}
		list[i] = list[child]
		i = child
	}
	return first
}
