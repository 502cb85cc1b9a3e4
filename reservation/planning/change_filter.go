// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"slices"
	"strings"
)

// This file has what a new filter, or another size or affinity of instances, means for the hosts that a reservation has.

// reshaped reports whether the instances are of another size or affinity, so that all of them are placed again.
func (p *changePlan) reshaped() bool {
	return p.to.Terms.Affinity != p.from.Affinity || !p.to.Terms.Resources.Equal(p.from.Resources)
}

// passes reports whether a host that the reservation has may stay by the filter. It need not pass the same filter again.
func (p *changePlan) passes(host int) bool {
	if !p.refiltered {
		return true
	}
	h := p.search.view.Hosts.Host(host)
	return h != nil && p.search.filter.Matches(h, p.search.request.window.Start > p.search.view.Now)
}

// failing returns the hosts of the reservation that do not pass its new filter, sorted, and how many hosts or instances it
// has there; none if the filter stays.
func (p *changePlan) failing() (names []string, lost int) {
	if !p.refiltered {
		return nil, 0
	}
	for _, claim := range p.from.Claims {
		host, known := p.search.view.Hosts.numbers[claim.Host]
		if claim.Span.End > p.search.view.Now && (!known || !p.passes(host)) {
			names, lost = append(names, claim.Host), lost+max(claim.Slices, 1)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), lost
}

// mustStay tells which hosts of an active reservation do not pass its new filter.
func mustStay(failing []string) string {
	verb := "do"
	if len(failing) == 1 {
		verb = "does"
	}
	return fmt.Sprintf("an active reservation keeps its hosts, and %s %s not pass host_properties", strings.Join(shortened(failing), ", "), verb)
}
