// SPDX-License-Identifier: Apache-2.0

package address

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
)

// Network is a network of Neutron.
type Network struct {
	ID       string
	External bool // floating IPs can be created on it
	Subnets  []Subnet
}

// Subnet is a subnet of a network.
type Subnet struct {
	ID, CIDR string
	Gateway  string // empty if it has none
	Pools    []Range
}

// Range is the addresses from First to Last, which Neutron allocates by itself.
type Range struct{ First, Last string }

// Canonical returns the usual form of an address; it fails with an Invalid fault for a text that is
// none.
func Canonical(text string) (string, error) {
	a, err := netip.ParseAddr(text)
	if err != nil || a.Zone() != "" {
		return "", fault.New(fault.Invalid, "IP address %s is invalid form.", shortened(text))
	}
	return a.String(), nil
}

// mostShown is the maximum number of characters of a text from outside in a message.
const mostShown = 60

func shortened(text string) string {
	if letters := []rune(text); len(letters) > mostShown {
		return string(letters[:mostShown]) + "…"
	}
	return text
}

// SubnetFor returns the subnet of an address that may be enrolled: it lies in a subnet of an external
// network, is not its gateway, and Neutron does not allocate it by itself. Its errors are faults with
// Blazar's texts (blazar/utils/openstack/neutron.py, fetch_subnet).
func SubnetFor(n Network, address string) (subnet string, err error) {
	a, err := netip.ParseAddr(address)
	if err != nil {
		return "", fault.New(fault.Invalid, "IP address %s is invalid form.", shortened(address))
	}
	if !n.External {
		return "", fault.New(fault.Invalid, "Network %s is not external, so it has no floating IPs", n.ID)
	}
	for _, s := range n.Subnets {
		within, err := netip.ParsePrefix(s.CIDR)
		if err != nil {
			return "", fmt.Errorf("subnet %s: %w", s.ID, err)
		}
		if !within.Contains(a) {
			continue
		}
		if s.Gateway == a.String() || slices.ContainsFunc(s.Pools, func(r Range) bool { return r.contains(a) }) {
			return "", fault.New(fault.Invalid, "The floating IP %s is used in allocation_pools or gateway_ip in subnet %s .", a, s.ID)
		}
		if a == within.Masked().Addr() || a == last(within) {
			return "", fault.New(fault.Invalid, "The floating IP %s is the first or last address of subnet %s, which no floating IP has", a, s.ID)
		}
		return s.ID, nil
	}
	return "", fault.New(fault.NotFound, "Valid subnet for the floating IP %s is not found.", a)
}

func (r Range) contains(a netip.Addr) bool {
	first, err := netip.ParseAddr(r.First)
	if err != nil {
		return false
	}
	last, err := netip.ParseAddr(r.Last)
	return err == nil && first.Compare(a) <= 0 && a.Compare(last) <= 0
}

// last returns the broadcast address of an IPv4 prefix; its last address of IPv6 is usual, so that
// the result is not valid then. Prefixes of one or two addresses have none either.
func last(p netip.Prefix) netip.Addr {
	if !p.Addr().Is4() || p.Bits() > 30 {
		return netip.Addr{}
	}
	bytes := p.Masked().Addr().As4()
	for i := range bytes {
		if covered := p.Bits() - 8*i; covered < 8 {
			bytes[i] |= 0xff >> max(covered, 0)
		}
	}
	return netip.AddrFrom4(bytes)
}
