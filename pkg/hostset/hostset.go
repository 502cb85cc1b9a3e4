// SPDX-License-Identifier: Apache-2.0

// Package hostset provides sets of hosts as bits, for decisions over many hosts.
package hostset

import (
	"iter"
	"math/bits"
	"slices"
)

// Set is a set of host numbers, one bit each. Both sets of an operation must be of the same
// hosts and have the same length.
type Set []uint64

// New returns an empty set for the hosts 0 … hosts-1.
func New(hosts int) Set { return make(Set, (hosts+63)/64) }

// Full returns the set of the hosts 0 … hosts-1.
func Full(hosts int) Set {
	s := New(hosts)
	for i := range s {
		s[i] = ^uint64(0)
	}
	if rest := hosts % 64; rest != 0 {
		s[len(s)-1] = 1<<rest - 1
	}
	return s
}

// Add adds host to the set.
func (s Set) Add(host int) { s[host>>6] |= 1 << (host & 63) }

// Remove removes host from the set.
func (s Set) Remove(host int) { s[host>>6] &^= 1 << (host & 63) }

// Has reports whether host is in the set.
func (s Set) Has(host int) bool { return host>>6 < len(s) && s[host>>6]&(1<<(host&63)) != 0 }

// Count returns the number of hosts in the set.
func (s Set) Count() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Clone returns a copy.
func (s Set) Clone() Set { return append(Set(nil), s...) }

// All iterates over the hosts in ascending order.
func (s Set) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i, word := range s {
			for word != 0 {
				if !yield(i<<6 + bits.TrailingZeros64(word)) {
					return
				}
				word &= word - 1
			}
		}
	}
}

// Unite adds every host of o.
func (s Set) Unite(o Set) {
	for i, word := range o {
		s[i] |= word
	}
}

// Keep removes every host that is not in o.
func (s Set) Keep(o Set) {
	for i, word := range o {
		s[i] &= word
	}
}

// Subtract removes every host of o.
func (s Set) Subtract(o Set) {
	for i, word := range o {
		s[i] &^= word
	}
}

// Empty reports whether the set has no hosts.
func (s Set) Empty() bool {
	for _, word := range s {
		if word != 0 {
			return false
		}
	}
	return true
}

// Equal reports whether s and o contain the same hosts.
func (s Set) Equal(o Set) bool { return slices.Equal(s, o) }

// CountWithout returns the number of hosts in s that are neither in a nor in b.
func (s Set) CountWithout(a, b Set) int {
	n := 0
	for i, word := range s {
		n += bits.OnesCount64(word &^ (a[i] | b[i]))
	}
	return n
}
