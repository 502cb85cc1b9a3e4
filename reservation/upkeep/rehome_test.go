// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/booking/memory"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/fence"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// quarter is a cloud with a real booking service. Its clock moves while the enforcer waits, or
// if a test moves it.
type quarter struct {
	*modelCloud
	bookings  *booking.Service
	enforcer  *upkeep.Enforcer
	searches  int // for other hosts
	now       span.Instant
	untrusted string
	change    func(hosts []inventory.Host) // changes the hosts of the inventory
}

func newQuarter(t *testing.T, hosts ...string) *quarter {
	t.Helper()
	q := &quarter{modelCloud: newModelCloud(hosts...), now: noon, change: func([]inventory.Host) {}}
	memory, carry := memory.New(), &lateCarrier{}
	ids := 0
	bookings, err := booking.Open(t.Context(), booking.Options{
		Records: memory, Keys: memory, Reader: memory, Cloud: carry,
		Defaults: planning.Defaults{Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete},
		Now:      func() span.Instant { return q.now },
		NewID:    func() string { ids++; return id(ids) },
	}, q.snapshot())
	if err != nil {
		t.Fatal(err)
	}
	q.bookings = bookings
	q.enforcer = upkeep.NewEnforcer(upkeep.EnforcerOptions{
		Fence: q, Instances: q, Promises: bookings, Records: memory, Snapshot: q.snapshot,
		Rehome: func(ctx context.Context, id string, blocked planning.Failed) (reservation.Reservation, bool, error) {
			q.searches++
			return bookings.Rehome(ctx, id, blocked)
		},
		Untrusted: func() string { return q.untrusted },
		Rules:     upkeep.Rules{Fence: fence.Rules{Ahead: fence.Forever, Prepare: 600}, Normal: upkeep.OrderWait, Left: upkeep.OrderMigrate, LeadTime: 600},
		Now:       func() span.Instant { return q.now }, Elapsed: func() time.Duration { return time.Duration(q.now) * time.Second },
		Wait: func(ctx context.Context, d time.Duration) error {
			q.now = q.now.Add(int64(d / time.Second))
			return ctx.Err()
		},
		Log: slog.New(slog.DiscardHandler),
	})
	carry.Enforcer = q.enforcer
	return q
}

// lateCarrier is an enforcer that is created after the booking service that it serves.
type lateCarrier struct{ *upkeep.Enforcer }

func (q *quarter) snapshot() *inventory.Snapshot {
	var hosts []inventory.Host
	for _, h := range q.modelCloud.inventory().Hosts() {
		hosts = append(hosts, *h)
	}
	q.change(hosts)
	s, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		panic(err)
	}
	return s
}

// Carry is the method of the cloud.
func (q *quarter) Carry(ctx context.Context, step fence.Step) error {
	return q.modelCloud.Carry(ctx, step)
}

// reserve books one host for half an hour from 100 s after noon on; host a is the first choice.
func (q *quarter) reserve(t *testing.T) reservation.Reservation {
	t.Helper()
	r, err := q.bookings.Book(t.Context(), booking.Caller{ProjectID: "p1"}, reservation.Request{
		Terms: reservation.Terms{Quantity: 1}, Start: noon.Add(100), Duration: 1800,
	}, nil)
	if err != nil || r.Claims[0].Host != "a" {
		t.Fatalf("booked %+v: %v", r.Claims, err)
	}
	return r
}

// pass carries out what is due during seconds. It returns the reservation at the end, and
// when it left host a, in seconds after noon.
func (q *quarter) pass(t *testing.T, r reservation.Reservation, seconds int64) (reservation.Reservation, int64) {
	t.Helper()
	var left int64
	for until := q.now.Add(seconds); q.now < until; q.now++ {
		q.bookings.Observe(q.snapshot())
		_, _ = q.bookings.CarryOut(t.Context()) // a failed start is repeated
		q.bookings.Wait()
		if is, live := q.bookings.Reservation(r.ID); live {
			r = is
		}
		if left == 0 && r.Claims[0].Host != "a" {
			left = int64(q.now - noon)
		}
	}
	return r, left
}

func events(r reservation.Reservation) string {
	var list []string
	for _, e := range r.Events {
		list = append(list, fmt.Sprintf("%s %s %s", e.Type, e.State, e.Detail))
	}
	return strings.Join(list, "\n")
}

func stays(host string) inventory.Instance {
	return inventory.Instance{ID: "stays-" + host, ProjectID: "p9", Host: host, Status: "ACTIVE"}
}

func TestABlockedStartMovesToAHostThatIsFree(t *testing.T) {
	q := newQuarter(t, "a", "b", "c")
	r := q.reserve(t)
	q.put(stays("a"))
	q.put(stays("b"))
	r, left := q.pass(t, r, 400)
	if r.Status != reservation.Active || r.Claims[0].Host != "c" || r.Degraded != "" {
		t.Fatalf("the reservation is %s on %v, degraded %q; want it active on c:\n%s", r.Status, r.HostNames(), r.Degraded, events(r))
	}
	if left < 100+60 {
		t.Errorf("the reservation moved %d s after noon, want 60 s after its start", left)
	}
	if !strings.Contains(events(r), "healed done hosts replaced: 1; they were not free at the start") {
		t.Errorf("the log does not tell the owner:\n%s", events(r))
	}
	for host, takes := range map[string]bool{"a": false, "b": false, "c": true} {
		if q.takes(host, q.flavors[r.ID]) != takes {
			t.Errorf("host %s admits the owner's instances: %v", host, !takes)
		}
	}
}

func TestABlockedStartStaysWhereNoOtherHostIsFree(t *testing.T) {
	for name, change := range map[string]func(q *quarter){
		"others are occupied too":       func(q *quarter) { q.put(stays("b")) },
		"the inventory is untrusted":    func(q *quarter) { q.untrusted = "many hosts have vanished" },
		"the other is not in the pool":  func(q *quarter) { q.change = func(hosts []inventory.Host) { hosts[1].Reservable = false } },
		"the other host sleeps forever": func(q *quarter) { q.change = func(hosts []inventory.Host) { hosts[1].Power = inventory.PowerFailed } },
	} {
		t.Run(name, func(t *testing.T) {
			q := newQuarter(t, "a", "b")
			r := q.reserve(t)
			q.put(stays("a"))
			change(q)
			if r, _ = q.pass(t, r, 600); r.Status != reservation.Pending && r.Status != reservation.Starting || r.Claims[0].Host != "a" || r.Degraded != "" {
				t.Errorf("the reservation is %s on %v, degraded %q; want it to wait for a:\n%s", r.Status, r.HostNames(), r.Degraded, events(r))
			}
			delete(q.guests, "stays-a")
			if r, _ = q.pass(t, r, 120); r.Status != reservation.Active {
				t.Errorf("the reservation is %s although a is free:\n%s", r.Status, events(r))
			}
		})
	}
}

func TestAStartMovesOffAHostThatDoesNotWakeInItsBootTime(t *testing.T) {
	q := newQuarter(t, "a", "b")
	r := q.reserve(t)
	q.change = func(hosts []inventory.Host) { hosts[0].Power, hosts[0].BootSeconds = inventory.PowerSleeping, 200 }
	r, left := q.pass(t, r, 700)
	if r.Status != reservation.Active || r.Claims[0].Host != "b" || left < 100+200+60 {
		t.Errorf("the reservation is %s on %v, moved %d s after noon:\n%s", r.Status, r.HostNames(), left, events(r))
	}
}

func TestAStartWhoseHostBecomesFreeInTimeStaysThere(t *testing.T) {
	q := newQuarter(t, "a", "b")
	r := q.reserve(t)
	q.put(stays("a"))
	r, _ = q.pass(t, r, 130)
	delete(q.guests, "stays-a")
	if r, left := q.pass(t, r, 300); r.Status != reservation.Active || left != 0 {
		t.Errorf("the reservation is %s on %v", r.Status, r.HostNames())
	}
}

// grow starts a reservation on host a and adds host b, where another project's instance begins to run
// before the host is given to the owner.
func (q *quarter) grow(t *testing.T) reservation.Reservation {
	t.Helper()
	r, _ := q.pass(t, q.reserve(t), 200)
	two := 2
	r, err := q.bookings.Change(t.Context(), booking.Caller{ProjectID: "p1"}, r.ID, planning.Change{Quantity: &two})
	if err != nil || r.Status != reservation.Active || !slices.Equal(r.HostNames(), []string{"a", "b"}) {
		t.Fatalf("the reservation is %s on %v: %v", r.Status, r.HostNames(), err)
	}
	q.put(stays("b"))
	return r
}

// prepare carries out the preparation of some seconds.
func (q *quarter) prepare(t *testing.T, r reservation.Reservation, seconds int64) reservation.Reservation {
	t.Helper()
	for until := q.now.Add(seconds); q.now < until; q.now = q.now.Add(5) {
		q.bookings.Observe(q.snapshot())
		if err := q.enforcer.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	r, _ = q.bookings.Reservation(r.ID)
	return r
}

func TestAnAddedHostThatDoesNotBecomeFreeIsReplaced(t *testing.T) {
	q := newQuarter(t, "a", "b", "c")
	r := q.prepare(t, q.grow(t), 55)
	if !slices.Equal(r.HostNames(), []string{"a", "b"}) {
		t.Fatalf("the reservation is on %v before a minute is over", r.HostNames())
	}
	r = q.prepare(t, r, 30)
	if !slices.Equal(r.HostNames(), []string{"a", "c"}) || r.Degraded != "" || !strings.Contains(events(r), "instead: c") {
		t.Fatalf("the reservation is on %v, degraded %q, want it on a and c:\n%s", r.HostNames(), r.Degraded, events(r))
	}
	for host, takes := range map[string]bool{"a": true, "b": false, "c": true} {
		if q.takes(host, q.flavors[r.ID]) != takes {
			t.Errorf("host %s admits the owner's instances: %v", host, !takes)
		}
	}
}

func TestAnAddedHostThatBecomesFreeInTimeStays(t *testing.T) {
	q := newQuarter(t, "a", "b", "c")
	r := q.prepare(t, q.grow(t), 30)
	delete(q.guests, "stays-b")
	if r = q.prepare(t, r, 60); !slices.Equal(r.HostNames(), []string{"a", "b"}) || !q.takes("b", q.flavors[r.ID]) {
		t.Errorf("the reservation is on %v, b admits its instances: %v", r.HostNames(), q.takes("b", q.flavors[r.ID]))
	}
}

func TestForAnAddedHostAnotherIsSearchedOnceAMinute(t *testing.T) {
	q := newQuarter(t, "a", "b")
	r := q.prepare(t, q.grow(t), 301)
	if q.searches < 3 || q.searches > 5 || !slices.Equal(r.HostNames(), []string{"a", "b"}) {
		t.Errorf("%d searches in five minutes, want one in a minute; the reservation is on %v", q.searches, r.HostNames())
	}
}

// An operator may have taken the host out of its aggregate.
func TestAHostWithInstancesOfTheReservationIsNotReplaced(t *testing.T) {
	q := newQuarter(t, "a", "b", "c")
	r := q.grow(t)
	q.put(inventory.Instance{ID: "own", ProjectID: "p1", Host: "b", Status: "ACTIVE", Flavor: q.flavors[r.ID]})
	if r = q.prepare(t, r, 120); !slices.Equal(r.HostNames(), []string{"a", "b"}) {
		t.Errorf("the reservation is on %v", r.HostNames())
	}
}

func TestAnUnknownReservationMovesOffNoHost(t *testing.T) {
	q := newQuarter(t, "a", "b")
	if _, changed, err := q.bookings.Rehome(t.Context(), id(99), func(string) (string, bool) { return "", true }); changed || err != nil && !fault.Is(err, fault.NotFound) {
		t.Errorf("changed %v, %v", changed, err)
	}
}
