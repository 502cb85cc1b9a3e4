// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"fmt"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// The hosts on which a change claims more are found under the lock of all decisions. A change of a
// reservation of 8,000 hosts takes about 8 times as long as one of 1,000; 64 times if each claim is
// compared with each.
func TestTheHostsOfALargeChangeAreFoundInLinearTime(t *testing.T) {
	took := func(n int) time.Duration {
		claims := func(at int64) (list []reservation.Claim) {
			for i := range n {
				list = append(list, reservation.Claim{Host: fmt.Sprintf("compute-%05d.example.org", i), Span: span.New(span.Instant(at), 3600)})
			}
			return list
		}
		before := reservation.Reservation{Status: reservation.Pending, Claims: claims(0)}
		after := reservation.Reservation{Status: reservation.Pending, Claims: claims(7200)}
		best := time.Hour
		for range 5 {
			begun := time.Now()
			if got := hostsAnew(before, after); len(got) != n {
				t.Fatalf("%d hosts, want %d", len(got), n)
			}
			best = min(best, time.Since(begun))
		}
		return best
	}
	if few, many := took(1000), took(8000); many > 25*few {
		t.Errorf("1,000 hosts take %v, 8,000 take %v", few, many)
	}
}
