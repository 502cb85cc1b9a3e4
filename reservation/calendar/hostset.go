package calendar

import (
	"iter"
	"math/bits"
)

// HostSet is a set of host numbers, one bit each. Sets that meet in one
// operation come from the same calendar and have the same length.
type HostSet []uint64

// NewHostSet gives an empty set with room for the hosts 0 … hosts-1.
func NewHostSet(hosts int) HostSet { return make(HostSet, (hosts+63)/64) }

// AllHosts gives the set of the hosts 0 … hosts-1.
func AllHosts(hosts int) HostSet {
	s := NewHostSet(hosts)
	for i := range s {
		s[i] = ^uint64(0)
	}
	if rest := hosts % 64; rest != 0 {
		s[len(s)-1] = 1<<rest - 1
	}
	return s
}

// Add puts host into the set.
func (s HostSet) Add(host int) { s[host>>6] |= 1 << (host & 63) }

// Remove takes host out of the set.
func (s HostSet) Remove(host int) { s[host>>6] &^= 1 << (host & 63) }

// Has says whether host is in the set.
func (s HostSet) Has(host int) bool { return host>>6 < len(s) && s[host>>6]&(1<<(host&63)) != 0 }

// Count is the number of hosts in the set.
func (s HostSet) Count() int {
	n := 0
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Clone gives a copy.
func (s HostSet) Clone() HostSet { return append(HostSet(nil), s...) }

// All walks the hosts in ascending order.
func (s HostSet) All() iter.Seq[int] {
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

// unite adds every host of o.
func (s HostSet) unite(o HostSet) {
	for i, word := range o {
		s[i] |= word
	}
}

// countWithout is the number of hosts in s and neither in a nor in b.
func (s HostSet) countWithout(a, b HostSet) int {
	n := 0
	for i, word := range s {
		n += bits.OnesCount64(word &^ (a[i] | b[i]))
	}
	return n
}
