// SPDX-License-Identifier: Apache-2.0

// Package address decides which floating IPs a reservation gets, and what must happen to the
// floating IPs of a cloud so that its reservations have theirs. Its functions are pure.
package address

import (
	"cmp"
	"net/netip"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Enrolled is an address that an admin has added to the pool: reservations may claim it, and nobody
// else uses it.
type Enrolled struct {
	ID      string
	Network string // the id of an external network in Neutron
	Subnet  string
	Address string
	Created span.Instant
}

// Claim is an address that a reservation holds for its span.
type Claim struct {
	Network string
	Address string
	// Required is true if the owner requested this address by name.
	Required bool
}

// Booked is a claim of a live reservation.
type Booked struct {
	Reservation string
	Address     string
	Span        span.Span
}

// Pool is the enrolled addresses of one network, and their claims.
type Pool struct {
	Network   string
	Addresses []string
	Booked    []Booked
	// Version increases with each commit that claims an address of the network, and with each
	// removal of an address.
	Version int64
}

// VersionKey is the name under which the records count the commits that claim addresses of a
// network, beside those of hosts. No host has a space in its name.
func VersionKey(network string) string { return "floating IPs of " + network }

// Without returns the pool without the claims of a reservation.
func (p Pool) Without(reservation string) Pool {
	p.Booked = slices.DeleteFunc(slices.Clone(p.Booked), func(b Booked) bool { return b.Reservation == reservation })
	return p
}

// With returns the pool with claims of a reservation; those on other networks do not count.
func (p Pool) With(reservation string, w span.Span, claims []Claim) Pool {
	p.Booked = slices.Clone(p.Booked)
	for _, c := range claims {
		if c.Network == p.Network {
			p.Booked = append(p.Booked, Booked{reservation, c.Address, w})
		}
	}
	return p
}

// Want is what a reservation asks of a pool.
type Want struct {
	Amount int
	// Required are addresses that must be among them. Kept are addresses that it has already: those
	// that are free stay, if the amount allows it.
	Required, Kept []string
	// Spared are addresses that it must not get, because others ask for them by name. It may require
	// them itself.
	Spared []string
	Span   span.Span
	// Latest is the latest start for Shortage.Earliest; 0 means no limit.
	Latest span.Instant
}

// Shortage is why a pool does not have what is wanted.
type Shortage struct {
	// Enrolled is the number of addresses in the pool, and Free of those that are free for the whole
	// span.
	Enrolled, Free int
	// Lacking are the required addresses that are not in the pool, and Taken those that others have in
	// the span.
	Lacking, Taken []string
	// Earliest is the first start from which the same would be free for as long; 0 means that there is
	// none.
	Earliest span.Instant
}

// Choose returns the claims for what is wanted, or why there are too few addresses. Required
// addresses come first, then kept ones, then those without any claim, so that addresses with gaps
// between claims stay for others; within each group in the order of the addresses.
func Choose(p Pool, w Want) ([]Claim, *Shortage) {
	c := newChoice(p, w)
	taken, short := c.taken(w.Span)
	if short == nil {
		return c.claims(taken), nil
	}
	short.Earliest = c.earliest()
	return nil, short
}

// Earliest returns the first start, not before that of w, from which what is wanted is free for as
// long; 0 if there is none until w.Latest.
func Earliest(p Pool, w Want) span.Instant { return newChoice(p, w).earliest() }

// choice is a pool and a want, with the positions of their addresses in the pool: many spans are
// tried on pools with thousands of addresses.
type choice struct {
	pool     Pool
	want     Want
	position map[string]int // of each address of the pool
	booked   []int          // the position of each claim of the pool; -1 if its address has left the pool
	required []int          // the positions of the required addresses that the pool has
	lacking  []string       // the others
	spared   map[int]bool   // the positions of the spared addresses that are not required
}

// newChoice returns the state of a choice of addresses: their positions in the pool, and which are
// booked, required and spared.
func newChoice(p Pool, w Want) *choice {
	c := &choice{pool: p, want: w, position: make(map[string]int, len(p.Addresses)), spared: make(map[int]bool)}
	for i, a := range p.Addresses {
		c.position[a] = i
	}
	for _, b := range p.Booked {
		at, ok := c.position[b.Address]
		if !ok {
			at = -1
		}
		c.booked = append(c.booked, at)
	}
	for _, a := range w.Required {
		if at, ok := c.position[a]; ok {
			c.required = append(c.required, at)
		} else {
			c.lacking = append(c.lacking, a)
		}
	}
	for _, a := range w.Spared {
		if at, ok := c.position[a]; ok && !slices.Contains(c.required, at) {
			c.spared[at] = true
		}
	}
	return c
}

// earliest returns the first start from which what is wanted is free for as long; 0 if there is none.
// Each claim makes its address useless for the starts from which the span would overlap it.
func (c *choice) earliest() span.Instant {
	if len(c.lacking) > 0 || c.want.Amount > len(c.pool.Addresses)-len(c.spared) {
		return 0
	}
	type turn struct {
		at     span.Instant
		claims int // how many more claims are in the way of the address from then on
		place  int
	}
	from, seconds := c.want.Span.Start, c.want.Span.Seconds()
	turns := []turn{{at: from, place: -1}}
	for i, at := range c.booked {
		b := c.pool.Booked[i].Span
		if at < 0 || c.spared[at] || b.End <= from {
			continue
		}
		turns = append(turns, turn{max(b.Start.Add(1-seconds), from), 1, at}, turn{b.End, -1, at})
	}
	slices.SortFunc(turns, func(a, b turn) int { return cmp.Compare(a.at, b.at) })
	required := make(map[int]bool, len(c.required))
	for _, at := range c.required {
		required[at] = true
	}
	claims, free, lacking := make([]int, len(c.pool.Addresses)), len(c.pool.Addresses)-len(c.spared), 0
	for i, t := range turns {
		if t.place >= 0 {
			before := claims[t.place]
			claims[t.place] += t.claims
			freed := btoi(claims[t.place] == 0) - btoi(before == 0)
			free += freed
			if required[t.place] {
				lacking -= freed
			}
		}
		switch {
		case i+1 < len(turns) && turns[i+1].at == t.at: // not all of this instant
		case c.want.Latest != 0 && t.at > c.want.Latest:
			return 0
		case free >= c.want.Amount && lacking == 0:
			return t.at
		}
	}
	return 0
}

// taken reports for each position whether others have the address in w. The shortage is nil if the
// other addresses suffice.
func (c *choice) taken(w span.Span) ([]bool, *Shortage) {
	taken := make([]bool, len(c.pool.Addresses))
	for at := range c.spared {
		taken[at] = true
	}
	short := &Shortage{Enrolled: len(taken), Free: len(taken) - len(c.spared), Lacking: c.lacking}
	for i, at := range c.booked {
		if at >= 0 && !taken[at] && c.pool.Booked[i].Span.Overlaps(w) {
			taken[at] = true
			short.Free--
		}
	}
	for _, at := range c.required {
		if taken[at] {
			short.Taken = append(short.Taken, c.pool.Addresses[at])
		}
	}
	if len(short.Lacking)+len(short.Taken) > 0 || short.Free < c.want.Amount {
		return taken, short
	}
	return taken, nil
}

// claims returns the claims on the first addresses that are not taken. There are enough of them.
func (c *choice) claims(taken []bool) []Claim {
	const required, kept, unclaimed, claimed = 0, 1, 2, 3
	rank := slices.Repeat([]int{unclaimed}, len(taken))
	for _, at := range c.booked {
		if at >= 0 {
			rank[at] = claimed
		}
	}
	for _, a := range c.want.Kept {
		if at, ok := c.position[a]; ok {
			rank[at] = kept
		}
	}
	for _, at := range c.required {
		rank[at] = required
	}
	var free []int
	for at := range taken {
		if !taken[at] {
			free = append(free, at)
		}
	}
	slices.SortFunc(free, func(i, j int) int {
		if rank[i] != rank[j] {
			return rank[i] - rank[j]
		}
		return Compare(c.pool.Addresses[i], c.pool.Addresses[j])
	})
	claims := make([]Claim, c.want.Amount)
	for i, at := range free[:c.want.Amount] {
		claims[i] = Claim{c.pool.Network, c.pool.Addresses[at], rank[at] == required}
	}
	return claims
}

// MostEnrolled is the largest number of addresses in the pool of a network. A decision reads them all.
const MostEnrolled = 4096

// CompareEnrolled orders enrolled addresses by network, then address.
func CompareEnrolled(a, b Enrolled) int {
	return cmp.Or(cmp.Compare(a.Network, b.Network), Compare(a.Address, b.Address))
}

// Compare orders addresses by their numbers; texts that are none come last.
func Compare(a, b string) int {
	x, errX := netip.ParseAddr(a)
	y, errY := netip.ParseAddr(b)
	if errX != nil || errY != nil {
		return cmp.Or(cmp.Compare(btoi(errX != nil), btoi(errY != nil)), cmp.Compare(a, b))
	}
	return x.Compare(y)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
