// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// traited returns n hosts with a hundred traits each, as libvirt reports.
func traited(n int) []inventory.Host {
	hosts := make([]inventory.Host, n)
	traits := make([]string, 100)
	for i := range traits {
		traits[i] = fmt.Sprintf("HW_CPU_X86_FEATURE_%03d", i)
	}
	for i := range hosts {
		hosts[i] = named(fmt.Sprintf("h%04d", i))[0]
		hosts[i].Traits = traits
	}
	return hosts
}

// The filters are the ones that read the traits of all hosts most often.
func TestAFilterThatTakesTooMuchWorkIsInvalid(t *testing.T) {
	s := newScene(t, traited(2000))
	lists := `["in", "HW_CPU_X86_FEATURE_XYZ"` + strings.Repeat(`,"$traits"`, 9990) + `]`
	expressions := `["or"` + strings.Repeat(`,["in","X","$traits"]`, 63) + `]`
	for name, tc := range map[string]struct{ filter, says string }{
		"long":        {lists, "has 99932 bytes; at most 16384 are allowed"},
		"many parts":  {`["in", "X"` + strings.Repeat(`,"$traits"`, 300) + `]`, "more than 256"},
		"many steps":  {expressions, "at most 1000000 are allowed"},
		"and as text": {fmt.Sprintf("%q", expressions), "at most 1000000 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			req := during(1, 100, 200)
			req.HostProperties = tc.filter
			_, booked := s.bookings.Book(t.Context(), owner, req, nil)
			_, _, asked := s.bookings.Availability(t.Context(), owner, reservation.Request{Terms: req.Terms, Duration: 60}, 1)
			for _, err := range []error{booked, asked} {
				got := fault.Of(err)
				if got == nil || got.Kind != fault.Invalid || got.Field != "host_properties" || !strings.Contains(got.Message, tc.says) {
					t.Errorf("got %.300v, want an invalid host_properties with %q", err, tc.says)
				}
			}
		})
	}
}
