// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/reservation"
)

const trouble = "its nova-compute is down"

func TestAHostThatIsDownTakesNoBooking(t *testing.T) {
	for name, tc := range map[string]struct {
		power inventory.Power
		want  []string // the hosts that accept bookings
	}{
		"running":  {inventory.PowerOn, []string{"b"}},
		"unknown":  {"", []string{"b"}},
		"failed":   {inventory.PowerFailed, []string{"b"}},
		"sleeping": {inventory.PowerSleeping, []string{"a", "b"}},
		"waking":   {inventory.PowerWaking, []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := named("a", "b")
			hosts[0].Power, hosts[0].Problem, hosts[0].BootSeconds = tc.power, trouble, 30
			s := newScene(t, hosts)
			for kind, ask := range map[string]func(quantity int, start, end int64) reservation.Request{
				"hosts": during, "instances": func(quantity int, start, end int64) reservation.Request { return cpus(8, quantity, start, end) },
			} {
				plan, err := s.bookings.Offer(t.Context(), owner, ask(len(tc.want), 1000, 1100))
				if err != nil {
					t.Fatalf("%s: %v", kind, err)
				}
				var got []string
				for _, claim := range plan.Claims {
					got = append(got, claim.Host)
				}
				slices.Sort(got)
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s (-want +got):\n%s", kind, diff)
				}
				if _, err := s.bookings.Offer(t.Context(), owner, ask(len(tc.want)+1, 1000, 1100)); err == nil {
					t.Errorf("%s: the offer has one host more than are healthy", kind)
				}
			}
		})
	}
}

func TestARefusalForTroubleSaysThatWaitingDoesNotHelp(t *testing.T) {
	hosts := named("a", "b", "c")
	hosts[1].Problem = trouble
	s := newScene(t, hosts)
	s.book(t, only("a", during(1, 0, 100)))
	for name, tc := range map[string]struct {
		quantity int
		want     reservation.Refusal
		says     string
	}{
		"too many for ever": {3, reservation.Refusal{Free: 1, LargestQuantity: 1}, "3 hosts asked for, there is room for 1"},
		"too many for now":  {2, reservation.Refusal{Free: 1, LargestQuantity: 1, EarliestStart: at(100)}, "2 hosts asked for, there is room for 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.bookings.Offer(t.Context(), owner, during(tc.quantity, 50, 90))
			refused, ok := errors.AsType[*reservation.Refusal](err)
			if !ok {
				t.Fatalf("got %v, want a refusal", err)
			}
			got := reservation.Refusal{Free: refused.Free, LargestQuantity: refused.LargestQuantity, EarliestStart: refused.EarliestStart}
			if diff := cmp.Diff(tc.want, got); diff != "" || refused.Constraint != reservation.HostsFree || refused.Matched != 3 {
				t.Errorf("refusal %+v (-want +got):\n%s", refused, diff)
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %q, want a message with %q", err, tc.says)
			}
			for _, claim := range refused.BlockedBy {
				if claim.Host == "b" {
					t.Error("the refusal lists the host in trouble as claimed")
				}
			}
		})
	}
}

func TestAHostThatIsWellAgainTakesBookings(t *testing.T) {
	s := newScene(t, named("a"))
	for _, step := range []struct {
		trouble string
		takes   bool
	}{{"", true}, {trouble, false}, {"it is disabled: maintenance", false}, {"", true}} {
		s.host("a").Problem = step.trouble
		s.observe(t)
		if _, err := s.bookings.Offer(t.Context(), owner, during(1, 10, 20)); (err == nil) != step.takes {
			t.Errorf("trouble %q: %v", step.trouble, err)
		}
	}
}
