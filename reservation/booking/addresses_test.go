// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/booking/memory"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// pooled enrolls n addresses of the network "n".
func pooled(n int) func(*booking.Options) {
	return func(o *booking.Options) {
		memory := o.Reader.(*memory.Records)
		o.Addresses = memory
		for i := range n {
			ip := fmt.Sprintf("198.51.100.%d", i+1)
			_ = memory.Enroll(context.Background(), address.Enrolled{ID: ip, Network: "n", Address: ip}) // it may be there from another replica
		}
	}
}

// floating asks for floating IPs as a reservation of a lease.
func floating(amount int, required ...string) reservation.MemberRequest {
	m := whole(amount, amount)
	m.Kind, m.OnEnd, m.Network, m.RequiredAddresses = reservation.Addresses, reservation.OnEndDelete, "n", required
	return m
}

func floatingFrom(start, end int64, members ...reservation.MemberRequest) reservation.LeaseRequest {
	return reservation.LeaseRequest{Name: "f", Start: at(start), End: at(end), Members: members}
}

// ips returns the addresses of a reservation.
func ips(r reservation.Reservation) (list []string) {
	for _, a := range r.Addresses {
		list = append(list, a.Address)
	}
	return list
}

func TestAnAddressGoesToOneOfManyLeasesAmongReplicas(t *testing.T) {
	for range 20 {
		all := replicas(t, 3, named("a"), pooled(2), unsteady(0))
		var clients sync.WaitGroup
		var booked atomic.Int64
		for i := range 18 {
			clients.Go(func() {
				_, err := all[i%3].bookings.BookLease(t.Context(), owner, floatingFrom(100, 200, floating(1)))
				if err == nil {
					booked.Add(1)
				} else if r := refusal(t, err); r.Constraint != reservation.FloatingIPsFree {
					t.Errorf("it is refused by %s", r.Constraint)
				}
			})
		}
		clients.Wait()
		if booked.Load() != 2 {
			t.Fatalf("%d leases got one of the two addresses, want 2", booked.Load())
		}
		agree(t, all)
	}
}

func TestTheReservationsOfALeaseShareNoAddress(t *testing.T) {
	s := newScene(t, named("a"), pooled(3))
	l := s.lease(t, floatingFrom(100, 200, floating(1), floating(2), whole(1, 1)))
	var taken []string
	for _, r := range l.Reservations {
		taken = append(taken, ips(r)...)
		if r.Kind == reservation.Addresses && len(r.Claims) > 0 {
			t.Errorf("%s has hosts", r.ID)
		}
	}
	if slices.Sort(taken); len(slices.Compact(taken)) != 3 {
		t.Errorf("the lease has %v", taken)
	}
	s.restart(t)
	if _, err := s.bookings.BookLease(t.Context(), owner, floatingFrom(150, 250, floating(1))); err == nil {
		t.Error("a taken address was booked")
	}
	s.lease(t, floatingFrom(200, 300, floating(3)))
}

func TestALimitOnTheDurationHoldsForFloatingIPs(t *testing.T) {
	s := newScene(t, named("a"), pooled(1), limited(planning.Limits{Duration: 99, Hosts: 1, HostSeconds: 1}))
	_, err := s.bookings.BookLease(t.Context(), owner, floatingFrom(100, 200, floating(1)))
	if r := refusal(t, err); r.Constraint != reservation.MaxDuration {
		t.Errorf("it is refused by %s", r.Constraint)
	}
	s.lease(t, floatingFrom(100, 199, floating(1))) // the limits on hosts do not count addresses
}

func TestAnActiveReservationKeepsItsAddressesWhenItGrowsAndLasts(t *testing.T) {
	s := newScene(t, named("a"), pooled(3))
	l := s.lease(t, floatingFrom(100, 200, floating(2, "198.51.100.3")))
	s.passTo(t, at(100))
	before := ips(l.Reservations[0])
	blocked := s.lease(t, floatingFrom(300, 400, floating(3)))
	end := at(250)
	three := 3
	grown, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, reservation.LeaseChange{
		End: &end, Members: []reservation.MemberChange{{ID: l.Reservations[0].ID, Min: &three, Max: &three}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := ips(grown.Reservations[0]); len(got) != 3 || slices.ContainsFunc(before, func(a string) bool { return !slices.Contains(got, a) }) {
		t.Errorf("it had %v and has %v", before, got)
	}
	for _, a := range grown.Reservations[0].Addresses {
		if a.Required != (a.Address == "198.51.100.3") {
			t.Errorf("only .3 is required, and a claim is %v", a)
		}
	}
	end = at(350)
	_, err = s.bookings.ChangeLease(t.Context(), owner, l.ID, reservation.LeaseChange{End: &end})
	refusal(t, err)
	if _, err := s.bookings.CancelLease(t.Context(), owner, blocked.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, reservation.LeaseChange{End: &end}); err != nil {
		t.Errorf("with the later lease gone: %v", err)
	}
}

func TestACanceledActiveLeaseHoldsItsAddressesUntilTheyAreDeleted(t *testing.T) {
	s := newScene(t, named("a"), pooled(1), func(o *booking.Options) { o.Networks, o.Replica = &servers{}, "one" })
	l := s.lease(t, floatingFrom(100, 200, floating(1)))
	id := l.Reservations[0].ID
	s.carryOut(t, 100)
	s.bookings.Wait()
	wantStatus(t, s, id, reservation.Active)
	if _, err := s.bookings.CancelLease(t.Context(), owner, l.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := s.memory.Lease(t.Context(), l.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("the canceled lease is shown: %v", err)
	}
	if r := s.get(t, id); r.Status != reservation.Active || r.Span.End != at(101) {
		t.Errorf("it is %s until %v", r.Status, r.Span.End)
	}
	if err := s.memory.Withdraw(t.Context(), "198.51.100.1"); !fault.Is(err, fault.Conflict) {
		t.Errorf("its address leaves the pool: %v", err)
	}
	s.carryOut(t, 101)
	s.bookings.Wait()
	wantStatus(t, s, id, reservation.Ended)
	if err := s.memory.Withdraw(t.Context(), "198.51.100.1"); err != nil {
		t.Error(err)
	}
}

// Any sequence of bookings, changes, cancellations and removals keeps each address with one live
// reservation at a time, and each reservation with as many addresses as it has promised.
func TestNoAddressIsPromisedTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := replicas(t, 2, named("a"), pooled(4))
		memory := all[0].memory
		var leases []string
		one := func(t *rapid.T) string { return rapid.SampledFrom(append(leases, "none")).Draw(t, "lease") }
		on := func(t *rapid.T) *scene { return all[rapid.IntRange(0, 1).Draw(t, "replica")] }
		t.Repeat(map[string]func(*rapid.T){
			"book": func(t *rapid.T) {
				start := int64(rapid.IntRange(0, 20).Draw(t, "start")) * 100
				req := floatingFrom(start, start+int64(rapid.IntRange(1, 5).Draw(t, "length"))*100, floating(rapid.IntRange(1, 3).Draw(t, "amount")))
				req.Start, req.End = max(req.Start, all[0].clock()), max(req.End, all[0].clock()+1)
				if l, err := on(t).bookings.BookLease(t.Context(), owner, req); err == nil {
					leases = append(leases, l.ID)
				}
			},
			"change": func(t *rapid.T) {
				id, n := one(t), rapid.IntRange(1, 4).Draw(t, "amount")
				end := at(int64(rapid.IntRange(1, 25).Draw(t, "end")) * 100)
				c := reservation.LeaseChange{End: &end}
				if l, err := memory.Lease(t.Context(), id); err == nil {
					c.Members = []reservation.MemberChange{{ID: l.Reservations[0].ID, Min: &n, Max: &n, AnyAddress: rapid.Bool().Draw(t, "any")}}
				}
				_, _ = on(t).bookings.ChangeLease(t.Context(), owner, id, c)
			},
			"cancel": func(t *rapid.T) { _, _ = on(t).bookings.CancelLease(t.Context(), owner, one(t)) },
			"withdraw": func(t *rapid.T) {
				_ = memory.Withdraw(t.Context(), fmt.Sprintf("198.51.100.%d", rapid.IntRange(1, 4).Draw(t, "address")))
			},
			"pass": func(t *rapid.T) {
				s := on(t)
				s.now.Add(int64(rapid.IntRange(1, 300).Draw(t, "seconds")))
				s.bookings.CarryOut(t.Context())
			},
			"": func(t *rapid.T) { checkAddresses(t, memory, all[0].clock()) },
		})
	})
}

// checkAddresses checks the promises from now on: an address that an active reservation got later was
// somebody else's before.
func checkAddresses(t *rapid.T, memory *memory.Records, now span.Instant) {
	live, err := memory.List(t.Context(), reservation.Query{Statuses: reservation.LiveStatuses})
	if err != nil {
		t.Fatal(err)
	}
	enrolled, _ := memory.Enrolled(t.Context())
	type promise struct {
		address, by string
		span        span.Span
	}
	var all []promise
	for _, r := range live {
		if len(r.Addresses) != r.Quantity {
			t.Fatalf("%s promises %d addresses and has %v", r.ID, r.Quantity, r.Addresses)
		}
		rest := span.Span{Start: max(r.Span.Start, now), End: r.Span.End}
		for _, a := range r.Addresses {
			if !slices.ContainsFunc(enrolled, func(e address.Enrolled) bool { return e.Address == a.Address }) {
				t.Fatalf("%s has %s, which is not in the pool", r.ID, a.Address)
			}
			for _, p := range all {
				if p.address == a.Address && (p.by == r.ID || p.span.Overlaps(rest)) {
					t.Fatalf("%s is promised to %s and %s", a.Address, p.by, r.ID)
				}
			}
			all = append(all, promise{a.Address, r.ID, rest})
		}
	}
}

// A lease may start two minutes before it is booked, and its floating IPs then start when it is.
func TestAnEndBeforeTheStartOfFloatingIPsIsRefusedThoughTheirLeaseHasStarted(t *testing.T) {
	s := newScene(t, named("a"), pooled(1), limited(planning.Limits{HostSeconds: 3600}))
	l, err := s.bookings.BookLease(t.Context(), owner, floatingFrom(-60, 100, floating(1)))
	if err != nil {
		t.Fatal(err)
	}
	s.now.Add(-3)
	for end := int64(-2); end <= 0; end++ {
		_, err := s.bookings.ChangeLease(t.Context(), owner, l.ID, reservation.LeaseChange{End: new(at(end))})
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("an end %d s after the start: %v, want a fault of the request", end, err)
		}
	}
}
