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
// reservation of 32,000 hosts takes about 32 times as long as one of 1,000; 1,000 times if each claim is
// compared with each. Other work on the machine may disturb a measurement, but not all of them.
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
		begun := time.Now()
		if got := hostsAnew(before, after); len(got) != n {
			t.Fatalf("%d hosts, want %d", len(got), n)
		}
		return time.Since(begun)
	}
	for range 20 {
		if took(32_000) <= 200*took(1000) {
			return
		}
	}
	t.Error("32,000 hosts take more than 200 times as long as 1,000")
}
