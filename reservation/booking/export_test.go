package booking

import "github.com/almanac-cloud/almanac/pkg/span"

// NextClaim gives the first time in which host is promised that ends after t;
// claims that touch or share it come as one.
func (d *Service) NextClaim(host string, t span.Instant) (span.Span, bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	number, known := d.hosts.numbers[host]
	if !known {
		return span.Span{}, false
	}
	return d.calendar.NextBusy(number, t)
}
