// SPDX-License-Identifier: Apache-2.0

package address_test

import (
	"net/netip"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation/address"
)

func TestAnAddressThatNeutronGivesOutIsRefused(t *testing.T) {
	n := address.Network{ID: "n", External: true, Subnets: []address.Subnet{
		{ID: "six", CIDR: "2001:db8::/64", Gateway: "2001:db8::1", Pools: []address.Range{{"2001:db8::2", "2001:db8::ff"}}},
		{ID: "four", CIDR: "198.51.100.0/24", Gateway: "198.51.100.1", Pools: []address.Range{{"198.51.100.2", "198.51.100.9"}, {"198.51.100.20", "198.51.100.29"}}},
	}}
	for text, want := range map[string]struct {
		subnet string
		kind   fault.Kind
	}{
		"198.51.100.10":  {subnet: "four"},
		"198.51.100.254": {subnet: "four"},
		"2001:db8::100":  {subnet: "six"},
		"198.51.100.0":   {kind: fault.Invalid},
		"198.51.100.255": {kind: fault.Invalid},
		"198.51.100.1":   {kind: fault.Invalid},
		"198.51.100.29":  {kind: fault.Invalid},
		"2001:db8::1":    {kind: fault.Invalid},
		"2001:db8::":     {kind: fault.Invalid},
		"2001:db8::fe":   {kind: fault.Invalid},
		"192.0.2.1":      {kind: fault.NotFound},
		"no address":     {kind: fault.Invalid},
	} {
		subnet, err := address.SubnetFor(n, text)
		if subnet != want.subnet || (err != nil) != (want.kind != "") || err != nil && !fault.Is(err, want.kind) {
			t.Errorf("%s: subnet %q, error %v; want %+v", text, subnet, err, want)
		}
	}
	n.External = false
	if _, err := address.SubnetFor(n, "198.51.100.10"); !fault.Is(err, fault.Invalid) {
		t.Errorf("in a network that is not external: %v", err)
	}
}

func TestAnAddressHasOneForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"198.51.100.7", "2001:DB8:0::7", "fe80::1%eth0"})).Draw(t, "text")
		got, err := address.Canonical(text)
		if err != nil {
			return
		}
		again, err := address.Canonical(got)
		if a, _ := netip.ParseAddr(text); err != nil || again != got || a.String() != got || a.Zone() != "" {
			t.Errorf("%q becomes %q, then %q, %v", text, got, again, err)
		}
	})
}
