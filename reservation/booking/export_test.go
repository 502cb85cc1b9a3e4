// SPDX-License-Identifier: Apache-2.0

package booking

import "github.com/almanac-cloud/almanac/pkg/span"

// NextClaim returns the first span of host's claims that ends after t. Claims that touch or
// overlap count as one.
func (d *Service) NextClaim(host string, t span.Instant) (span.Span, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	number, known := d.hosts.Number(host)
	if !known {
		return span.Span{}, false
	}
	return d.calendar.NextBusy(number, t)
}
