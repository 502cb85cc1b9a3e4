// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"cmp"
	"slices"
	"sync"
)

// Apply applies a change to the records, as the database does.
func (s *Stored) Apply(c Change) {
	s.Images = replaced(s.Images, c.Images, func(i Image) string { return i.ID }, func(i Image) bool { return slices.Contains(c.ForgetImages, i.ID) })
	s.Transfers = replaced(s.Transfers, c.Transfers, func(t Transfer) string { return t.ID }, func(t Transfer) bool {
		return t.Outcome != "" && t.Finished < c.ForgetBefore
	})
	of := func(one Cached) imageOnHost { return imageOnHost{one.Image, one.Host} }
	s.Cached = replaced(s.Cached, c.Cached, of, func(one Cached) bool {
		return slices.ContainsFunc(c.Forgotten, func(o Cached) bool { return of(o) == of(one) })
	})
	slices.SortFunc(s.Images, func(a, b Image) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(s.Transfers, func(a, b Transfer) int { return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.ID, b.ID)) })
	slices.SortFunc(s.Cached, func(a, b Cached) int { return cmp.Or(cmp.Compare(a.Image, b.Image), cmp.Compare(a.Host, b.Host)) })
}

// replaced returns a list without the forgotten rows, in which each of rows replaces the one with
// the same key, or is added.
func replaced[T any, K comparable](list, rows []T, key func(T) K, forgotten func(T) bool) []T {
	fresh := make(map[K]bool, len(rows))
	for _, row := range rows {
		fresh[key(row)] = true
	}
	rest := slices.DeleteFunc(slices.Clone(list), func(row T) bool { return fresh[key(row)] || forgotten(row) })
	return append(rest, rows...)
}

// counts sums up the transfers whose end this replica has seen.
type counts struct {
	mu  sync.Mutex
	all map[Outcome]Count
}

// Count is the number and the sums of transfers with the same outcome.
type Count struct {
	Transfers, Bytes, Seconds int64
}

func (c *counts) add(t Transfer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[Outcome]Count{}
	}
	n := c.all[t.Outcome]
	n.Transfers++
	n.Bytes += t.Bytes
	n.Seconds += int64(t.Finished - t.Begun)
	c.all[t.Outcome] = n
}

// Done returns the count of the transfers with an outcome whose end this replica has seen.
func (c *Controller) Done(o Outcome) Count {
	c.done.mu.Lock()
	defer c.done.mu.Unlock()
	return c.done.all[o]
}
