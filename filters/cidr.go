// SPDX-License-Identifier: Apache-2.0

package filters

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// SimpleCIDRAffinity keeps a request to the hosts whose addresses are in the network of the
// hints build_near_host_ip and cidr; the default of cidr is /24
// (nova/scheduler/filters/affinity_filter.py). It refuses hosts without a known address.
type SimpleCIDRAffinity struct {
	oncePerRequest
	addresses cached[[]netip.Addr]
}

func (*SimpleCIDRAffinity) Name() string { return "SimpleCIDRAffinityFilter" }

// For implements Filter. Without the hint build_near_host_ip there is no test.
func (f *SimpleCIDRAffinity) For(s *inventory.States, r *placing.Request, _ span.Instant) Test {
	near := r.Hints["build_near_host_ip"]
	if skipsNovaFilters(r) || empty(near) {
		return nil
	}
	size, given := r.Hints["cidr"]
	if !given {
		size = []string{"/24"}
	}
	if len(near) != 1 || len(size) != 1 {
		return refuseAll("the hints build_near_host_ip and cidr need one value each")
	}
	n, err := network(near[0]+size[0], s.Nova().Has(release.StrictAddresses))
	if err != nil {
		return refuseAll(fmt.Sprintf("the hints build_near_host_ip and cidr are not a network: %v", err))
	}
	return nearby{s, n, f.addresses.get(s, addresses)}
}

func addresses(s *inventory.States) []netip.Addr {
	list := make([]netip.Addr, s.Len())
	for i := range list {
		list[i], _ = netip.ParseAddr(s.Host(i).IP)
	}
	return list
}

type nearby struct {
	s         *inventory.States
	network   netip.Prefix
	addresses []netip.Addr
}

func (n nearby) Keep(hosts hostset.Set) {
	for i := range hosts.All() {
		if !n.network.Contains(n.addresses[i]) {
			hosts.Remove(i)
		}
	}
}

func (n nearby) Why(i int) string {
	if !n.addresses[i].IsValid() {
		return "the address of the host is unknown"
	}
	return fmt.Sprintf("the address %s of the host is not in %s", n.addresses[i], n.network.Masked())
}

// network reads an address and the size of its network as netaddr's IPNetwork does. The size is a
// length, a netmask or a host mask. Unless strict, an IPv4 address may lack its last parts, and
// its parts may begin with zeros, as before netaddr 1.
func network(text string, strict bool) (netip.Prefix, error) {
	first, size, sized := strings.Cut(text, "/")
	address, err := netip.ParseAddr(first)
	if err != nil && !strict {
		address, err = partialIPv4(first)
	}
	if err != nil || address.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("%q is not an address", first)
	}
	length := address.BitLen()
	if sized {
		number, err := integer(size)
		if err != nil {
			number, err = maskLength(size, address)
		}
		if err != nil || number < 0 || number > int64(length) {
			return netip.Prefix{}, fmt.Errorf("%q is not a network size for %s", size, address)
		}
		length = int(number)
	}
	return netip.PrefixFrom(address, length), nil
}

var errNoAddress = errors.New("not an IPv4 address")

// partialIPv4 reads the first one to four parts of an address; missing parts are 0.
func partialIPv4(text string) (netip.Addr, error) {
	parts := strings.Split(text, ".")
	if len(parts) > 4 {
		return netip.Addr{}, errNoAddress
	}
	var bytes [4]byte
	for n, part := range parts {
		number, err := integer(part)
		if err != nil || number < 0 || number > 255 {
			return netip.Addr{}, errNoAddress
		}
		bytes[n] = byte(number)
	}
	return netip.AddrFrom4(bytes), nil
}

// maskLength returns the prefix length of a netmask or host mask.
func maskLength(text string, address netip.Addr) (int64, error) {
	mask, err := netip.ParseAddr(text)
	if err != nil || mask.BitLen() != address.BitLen() || mask.Zone() != "" {
		return 0, errNoAddress
	}
	var bits strings.Builder
	for _, b := range mask.AsSlice() {
		fmt.Fprintf(&bits, "%08b", b)
	}
	for _, first := range []string{"1", "0"} { // a netmask begins with ones
		rest := strings.TrimLeft(bits.String(), first)
		if !strings.Contains(rest, first) {
			return int64(bits.Len() - len(rest)), nil
		}
	}
	return 0, errNoAddress
}
