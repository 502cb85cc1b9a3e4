// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
)

func hostNames(claims []reservation.Claim) []string {
	return (&reservation.Reservation{Claims: claims}).HostNames()
}

// countOn returns the number of hosts or instances that claims have on host.
func countOn(claims []reservation.Claim, host string) int {
	sum := 0
	for _, c := range claims {
		if c.Host == host {
			sum += max(c.Slices, 1)
		}
	}
	return sum
}

// countClaimed returns the number of hosts or instances in claims.
func countClaimed(claims []reservation.Claim) int {
	sum := 0
	for _, c := range claims {
		sum += max(c.Slices, 1)
	}
	return sum
}

// without returns the claims without their first n hosts or instances.
func without(claims []reservation.Claim, n int) (rest []reservation.Claim) {
	for _, c := range claims {
		taken := min(n, max(c.Slices, 1))
		if n -= taken; taken == max(c.Slices, 1) {
			continue
		}
		if c.Slices > 0 {
			c.Slices -= taken
		}
		rest = append(rest, c)
	}
	return rest
}

func shortened(list []string) []string {
	if len(list) <= mostNamed {
		return list
	}
	return append(slices.Clone(list[:mostNamed]), fmt.Sprintf("and %d more", len(list)-mostNamed))
}

// mostNamed is the largest number of hosts that one sentence names.
const mostNamed = 10

func setOf(names []string) map[string]bool {
	set := make(map[string]bool, len(names))
	for _, name := range names {
		set[name] = true
	}
	return set
}

// required returns the addresses that the owner requires by name.
func required(claims []address.Claim) (list []string) {
	for _, c := range claims {
		if c.Required {
			list = append(list, c.Address)
		}
	}
	return list
}

// addressesOf returns the addresses of claims.
func addressesOf(claims []address.Claim) []string {
	list := make([]string, len(claims))
	for i, c := range claims {
		list[i] = c.Address
	}
	return list
}
