// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// leadTime is the lead time of these tests.
const leadTime = 60

func leading(o *booking.Options) { o.LeadTime = leadTime }

// The order is that of decision 10 of the design, without images.
func TestHostsAreChosenInOneOrder(t *testing.T) {
	type host = inventory.Host
	guests := func(h *host) { h.InstanceCount = 1 }
	sleeping := func(h *host) { h.Power, h.BootSeconds = inventory.PowerSleeping, 30 }
	efficient := func(flops float64) func(*host) { return func(h *host) { h.FlopsPerWatt = flops } }
	for name, tc := range map[string]struct {
		a, b  []func(*host) // how the hosts named a and b differ from plain ones
		start int64
		want  string // the first choice
	}{
		"by name":                             {want: "a"},
		"efficiency before name":              {a: []func(*host){efficient(1)}, b: []func(*host){efficient(2)}, want: "b"},
		"known before unknown efficiency":     {b: []func(*host){efficient(0.1)}, want: "b"},
		"equal efficiency goes by name":       {a: []func(*host){efficient(2)}, b: []func(*host){efficient(2)}, want: "a"},
		"empty before efficiency, now":        {a: []func(*host){efficient(9), guests}, want: "b"},
		"empty before efficiency, lead time":  {a: []func(*host){efficient(9), guests}, start: leadTime, want: "b"},
		"empty before efficiency, far ahead":  {a: []func(*host){efficient(9), guests}, start: leadTime + 1, want: "b"},
		"both have guests":                    {a: []func(*host){guests}, b: []func(*host){guests, efficient(1)}, want: "b"},
		"awake, where the other cannot be":    {a: []func(*host){efficient(9), sleeping}, start: 29, want: "b"},
		"wakeable before the start is enough": {a: []func(*host){efficient(9), sleeping}, start: 30, want: "a"},
		"asleep and empty before guests":      {a: []func(*host){guests}, b: []func(*host){sleeping}, start: 30, want: "b"},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := named("a", "b")
			for i, changes := range [][]func(*host){tc.a, tc.b} {
				for _, change := range changes {
					change(&hosts[i])
				}
			}
			s := newScene(t, hosts, leading)
			for kind, req := range map[string]reservation.Request{
				"host": during(1, tc.start, tc.start+100), "instance": cpus(1, 1, tc.start, tc.start+100),
			} {
				plan, err := s.bookings.Offer(t.Context(), owner, req)
				if err != nil || plan.Claims[0].Host != tc.want {
					t.Errorf("%s: %+v, %v; want %s", kind, plan.Claims, err, tc.want)
				}
			}
		})
	}
}

func TestGuestsThatNobodyTakesAwayOccupyAHostAtAnyDistance(t *testing.T) {
	ordinary, preemptible := inventory.Instance{ID: "1"}, inventory.Instance{ID: "1", Preemptible: true}
	hinted := inventory.Instance{ID: "1", Reservation: "over"}
	flavored := inventory.Instance{ID: "1", Flavor: inventory.Flavor{ExtraSpecs: map[string]string{inventory.ReservationMark: "over"}}}
	for name, tc := range map[string]struct {
		guest    inventory.Instance
		migrates bool
		want     string // a has the guest and is more efficient
	}{
		"an ordinary guest stays":                              {ordinary, false, "b"},
		"an ordinary guest is migrated":                        {ordinary, true, "a"},
		"a preemptible guest makes room":                       {preemptible, false, "a"},
		"what an ended reservation left":                       {flavored, false, "b"},
		"what an ended reservation left, admitted by hint":     {hinted, false, "b"},
		"what an ended reservation left may stay all the same": {flavored, true, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := named("a", "b")
			hosts[0].FlopsPerWatt, hosts[0].InstanceCount, hosts[0].Instances = 2, 1, []inventory.Instance{tc.guest}
			hosts[1].FlopsPerWatt = 1
			s := newScene(t, hosts, leading, func(o *booking.Options) { o.Migrates = tc.migrates })
			first, second := s.book(t, during(1, 86400, 90000)), s.book(t, during(1, 86400, 90000))
			if got := first.Claims[0].Host; got != tc.want {
				t.Errorf("host %s is chosen, want %s", got, tc.want)
			}
			if first.Claims[0].Host == second.Claims[0].Host {
				t.Error("the other host has no claim")
			}
		})
	}
}

func TestGuestsOfARunningReservationGoWithItsEnd(t *testing.T) {
	hosts := named("a", "b")
	hosts[0].FlopsPerWatt, hosts[1].FlopsPerWatt = 2, 1
	s := newScene(t, hosts, leading)
	running := s.book(t, during(1, 0, 1000))
	s.passTo(t, at(0))
	s.host("a").InstanceCount = 1
	s.host("a").Instances = []inventory.Instance{{ID: "1", Reservation: running.ID}}
	s.observe(t)
	if got := s.book(t, during(1, 86400, 90000)).Claims[0].Host; got != "a" {
		t.Errorf("host %s is chosen, want a, which is free at that time", got)
	}
}

// The requests ask for more and more hosts of one mixed cloud.
func TestTheOrderIsTotal(t *testing.T) {
	hosts := named("a", "b", "c", "d", "e", "f")
	hosts[0].FlopsPerWatt, hosts[0].InstanceCount = 9, 1
	hosts[2].FlopsPerWatt = 3
	hosts[3].FlopsPerWatt, hosts[3].Power, hosts[3].BootSeconds = 5, inventory.PowerSleeping, 10
	hosts[4].FlopsPerWatt, hosts[4].Power = 7, inventory.PowerFailed
	hosts[5].FlopsPerWatt, hosts[5].Reservable = 8, false
	s := newScene(t, hosts, leading)
	order := []string{"d", "c", "b", "a"}
	for n := range order {
		plan, err := s.bookings.Offer(t.Context(), owner, during(n+1, 20, 100))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(order[:n+1], claimed(reservation.Reservation{Claims: plan.Claims})); diff != "" {
			t.Errorf("%d hosts (-want +got):\n%s", n+1, diff)
		}
	}
}

// A000_1 is the choice of nodes in check A000-1 of paper 000, without images: nodes with room
// for more come first.
func TestA000_1(t *testing.T) {
	for name, tc := range map[string]struct {
		quantity    int
		want        []string
		wantLargest int // largest quantity of a refusal
	}{
		"n=4": {quantity: 4, want: []string{"N2×2", "N3×2"}},
		"n=5": {quantity: 5, want: []string{"N2×2", "N3×2", "N1×1"}},
		"n=6": {quantity: 6, wantLargest: 5},
	} {
		t.Run(name, func(t *testing.T) {
			hosts := named("N1", "N2", "N3")
			for i := range hosts {
				hosts[i].Capacity = resource.Vector{VCPUs: 2, MemoryMB: 1024}
			}
			s := newScene(t, hosts)
			vm := only("N1", cpus(1, 1, 100, 200))
			vm.Resources.MemoryMB = 512
			s.book(t, vm)
			before := s.stored(t)
			vm = cpus(1, tc.quantity, 150, 250)
			vm.Resources.MemoryMB = 512
			r, err := s.bookings.Book(t.Context(), owner, vm, nil)
			if tc.wantLargest > 0 {
				if got := refusal(t, err).LargestQuantity; got != tc.wantLargest {
					t.Errorf("largest quantity %d, want %d", got, tc.wantLargest)
				}
				if diff := cmp.Diff(before, s.stored(t)); diff != "" {
					t.Errorf("records (-before +after):\n%s", diff)
				}
				return
			}
			if diff := cmp.Diff(tc.want, claimed(r)); err != nil || diff != "" {
				t.Errorf("%v; claims (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestAffinityOfInstances(t *testing.T) {
	for name, tc := range map[string]struct {
		affinity    calendar.Affinity
		quantity    int
		want        []string
		wantLargest int // largest quantity of a refusal
	}{
		"any hosts":               {affinity: calendar.AffinityNone, quantity: 10, want: []string{"b×8", "c×2"}},
		"any hosts, all there is": {affinity: calendar.AffinityNone, quantity: 20, want: []string{"b×8", "c×8", "a×4"}},
		"one more":                {affinity: calendar.AffinityNone, quantity: 21, wantLargest: 20},
		"one host":                {affinity: calendar.AffinitySame, quantity: 8, want: []string{"b×8"}},
		"one host, too many":      {affinity: calendar.AffinitySame, quantity: 9, wantLargest: 8},
		"different hosts":         {affinity: calendar.AffinityDifferent, quantity: 3, want: []string{"a×1", "b×1", "c×1"}},
		"one more than hosts":     {affinity: calendar.AffinityDifferent, quantity: 4, wantLargest: 3},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, named("a", "b", "c"))
			s.book(t, only("a", cpus(4, 1, 0, 1000)))
			req := cpus(1, tc.quantity, 100, 200)
			req.Affinity = tc.affinity
			r, err := s.bookings.Book(t.Context(), owner, req, nil)
			if tc.wantLargest > 0 {
				if got := refusal(t, err).LargestQuantity; got != tc.wantLargest {
					t.Errorf("largest quantity %d, want %d", got, tc.wantLargest)
				}
				return
			}
			if diff := cmp.Diff(tc.want, claimed(r)); err != nil || diff != "" {
				t.Errorf("%v; claims (-want +got):\n%s", err, diff)
			}
		})
	}
}

// Instances whose spans touch never add up. Overlapping ones always do, also those of one
// reservation.
func TestInstancesShareAHostOnlyWhileItHasRoom(t *testing.T) {
	s := newScene(t, named("a"))
	s.book(t, cpus(4, 2, 0, 100))
	s.book(t, cpus(4, 2, 100, 200))
	s.book(t, cpus(8, 1, 200, 300))
	_, err := s.bookings.Offer(t.Context(), owner, cpus(1, 1, 99, 101))
	if got := refusal(t, err); got.EarliestStart != at(300) || len(got.BlockedBy) != 2 {
		t.Errorf("%v: earliest start %v, blocks %v; want %v and two", got, got.EarliestStart, got.BlockedBy, at(300))
	}
	_, err = s.bookings.Offer(t.Context(), owner, during(1, 299, 400))
	if got := refusal(t, err).EarliestStart; got != at(300) {
		t.Errorf("a whole host is free from %v, want %v", got, at(300))
	}
}

func TestMoreThanTheCloudIsARefusal(t *testing.T) {
	s := newScene(t, named("a", "b"))
	for _, quantity := range []int{17, math.MaxInt32, math.MaxInt} {
		for _, req := range []reservation.Request{during(quantity, 100, 200), cpus(1, quantity, 100, 200)} {
			_, err := s.bookings.Book(t.Context(), owner, req, nil)
			want := map[reservation.Kind]int{"": 2, reservation.Instances: 16}[req.Kind]
			if got := refusal(t, err).LargestQuantity; got != want {
				t.Errorf("%d of kind %q: largest quantity %d, want %d", quantity, req.Kind, got, want)
			}
		}
	}
	r := s.book(t, during(1, 100, 200))
	_, err := s.bookings.Change(t.Context(), owner, r.ID, planning.Change{Quantity: new(math.MaxInt)})
	if got := refusal(t, err).LargestQuantity; got != 2 {
		t.Errorf("a change: largest quantity %d, want 2", got)
	}
}
