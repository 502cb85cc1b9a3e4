// Package hostset has sets of hosts as bits: what decisions over many hosts are made with.
package hostset

import (
	"iter"
	"math/bits"
	"slices"
)

// Set is a set of host numbers, one bit each. Sets that meet in one
// operation are of the same hosts and have the same length.
type Set []uint64

// New gives an empty set with room for the hosts 0 … hosts-1.
func New(hosts int) Set { return make(Set, (hosts+63)/64) }

// Full gives the set of the hosts 0 … hosts-1.
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

// Add puts host into the set.
func (s Set) Add(host int) { s[host>>6] |= 1 << (host & 63) }

// Remove takes host out of the set.
func (s Set) Remove(host int) { s[host>>6] &^= 1 << (host & 63) }

// Has says whether host is in the set.
func (s Set) Has(host int) bool { return host>>6 < len(s) && s[host>>6]&(1<<(host&63)) != 0 }

// Count is the number of hosts in the set.
func (s Set) Count() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Clone gives a copy.
func (s Set) Clone() Set { return append(Set(nil), s...) }

// All walks the hosts in ascending order.
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

// Keep takes out every host that is not in o.
func (s Set) Keep(o Set) {
	for i, word := range o {
		s[i] &= word
	}
}

// Subtract takes out every host of o.
func (s Set) Subtract(o Set) {
	for i, word := range o {
		s[i] &^= word
	}
}

// Empty says that no host is in the set.
func (s Set) Empty() bool {
	for _, word := range s {
		if word != 0 {
			return false
		}
	}
	return true
}

// Equal says that the same hosts are in s and o.
func (s Set) Equal(o Set) bool { return slices.Equal(s, o) }

// CountWithout is the number of hosts in s and neither in a nor in b.
func (s Set) CountWithout(a, b Set) int {
	n := 0
	for i, word := range s {
		n += bits.OnesCount64(word &^ (a[i] | b[i]))
	}
	return n
}
