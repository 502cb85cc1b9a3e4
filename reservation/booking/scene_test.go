// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/booking/memory"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// base is the start of every scene, in the middle of an hour of the calendar's index.
const base = span.Instant(2_000_000_000)

// at returns the instant that many seconds after base.
func at(seconds int64) span.Instant { return base.Add(seconds) }

// tester is the common part of testing.T and rapid.T.
type tester interface {
	rapid.TB
	Context() context.Context
}

// scene is a service with a clock that the test sets.
type scene struct {
	bookings *booking.Service
	memory   *memory.Records
	options  booking.Options
	hosts    []inventory.Host
	now      *atomic.Int64
	ids      *atomic.Int64
}

// owner is the caller of tests for which the caller is irrelevant.
var owner = booking.Caller{ProjectID: "demo", UserID: "ann"}

func newScene(t tester, hosts []inventory.Host, adjust ...func(*booking.Options)) *scene {
	t.Helper()
	s := &scene{memory: memory.New(), hosts: hosts, now: new(atomic.Int64), ids: new(atomic.Int64)}
	s.now.Store(int64(base))
	s.options = booking.Options{
		Records: s.memory, Keys: s.memory, Reader: s.memory,
		Defaults: planning.Defaults{Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete},
		Now:      s.clock,
		NewID:    func() string { return fmt.Sprintf("r%03d", s.ids.Add(1)) },
	}
	for _, f := range adjust {
		f(&s.options)
	}
	s.restart(t)
	return s
}

func limited(l planning.Limits) func(*booking.Options) {
	return func(o *booking.Options) { o.Limits = l }
}

func (s *scene) clock() span.Instant { return span.Instant(s.now.Load()) }

// passTo sets the clock and carries out what is due by then.
func (s *scene) passTo(t tester, now span.Instant) {
	t.Helper()
	s.now.Store(int64(now))
	if _, failed := s.bookings.CarryOut(t.Context()); len(failed) > 0 {
		t.Fatalf("carry out: %v", failed)
	}
}

// restart opens a new service on the same records.
func (s *scene) restart(t tester) {
	t.Helper()
	bookings, err := booking.Open(t.Context(), s.options, s.snapshot(t))
	if err != nil {
		t.Fatalf("open the service: %v", err)
	}
	s.bookings = bookings
}

func (s *scene) snapshot(t tester) *inventory.Snapshot {
	t.Helper()
	snapshot, err := inventory.NewSnapshot(s.hosts, nil, map[string]bool{"rack": true})
	if err != nil {
		t.Fatalf("new snapshot: %v", err)
	}
	return snapshot
}

// host returns the scene's host of that name, for changes before observe.
func (s *scene) host(name string) *inventory.Host {
	for i := range s.hosts {
		if s.hosts[i].Name == name {
			return &s.hosts[i]
		}
	}
	return nil
}

func (s *scene) observe(t tester) { s.bookings.Observe(s.snapshot(t)) }

// named returns hosts of the pool that differ only in their names.
func named(names ...string) []inventory.Host {
	hosts := make([]inventory.Host, len(names))
	for i, name := range names {
		hosts[i] = inventory.Host{Name: name, Reservable: true, Capacity: resource.Vector{VCPUs: 8, MemoryMB: 16384, DiskGB: 100}}
	}
	return hosts
}

// during requests quantity hosts throughout [start, end), in seconds after base.
func during(quantity int, start, end int64) reservation.Request {
	return reservation.Request{Terms: reservation.Terms{Quantity: quantity}, Start: at(start), End: at(end)}
}

// cpus requests quantity instances of n vCPUs throughout [start, end).
func cpus(n int64, quantity int, start, end int64) reservation.Request {
	req := during(quantity, start, end)
	req.Kind, req.Resources = reservation.Instances, resource.Vector{VCPUs: n}
	return req
}

func only(host string, req reservation.Request) reservation.Request {
	req.HostProperties = fmt.Sprintf(`["=", "$name", %q]`, host)
	return req
}

func (s *scene) book(t tester, req reservation.Request) reservation.Reservation {
	t.Helper()
	r, err := s.bookings.Book(t.Context(), owner, req, nil)
	if err != nil {
		t.Fatalf("book %+v: %v", req, err)
	}
	return r
}

func (s *scene) change(t tester, id string, c planning.Change) reservation.Reservation {
	t.Helper()
	r, err := s.bookings.Change(t.Context(), owner, id, c)
	if err != nil {
		t.Fatalf("change %s: %v", id, err)
	}
	return r
}

func (s *scene) get(t tester, id string) reservation.Reservation {
	t.Helper()
	r, err := s.memory.Get(t.Context(), id)
	if err != nil {
		t.Fatalf("get %s: %v", id, err)
	}
	return r
}

// refusal returns err as a refusal, and ends the test if it is none.
func refusal(t tester, err error) *reservation.Refusal {
	t.Helper()
	r, ok := errors.AsType[*reservation.Refusal](err)
	if !ok {
		t.Fatalf("got %v, want a refusal", err)
	}
	return r
}

// claimed formats claims as "host" or "host×slices", in their order.
func claimed(r reservation.Reservation) []string {
	var list []string
	for _, c := range r.Claims {
		if c.Slices == 0 {
			list = append(list, c.Host)
		} else {
			list = append(list, fmt.Sprintf("%s×%d", c.Host, c.Slices))
		}
	}
	return list
}

// answer is the service's answer to a probe.
type answer struct {
	Plan    planning.Plan
	Refusal *reservation.Refusal
}

// answers returns the service's answers to a few requests of each kind.
func (s *scene) answers(t tester) []answer {
	t.Helper()
	now := s.clock()
	var list []answer
	for _, quantity := range []int{1, 2, 4} {
		for _, req := range []reservation.Request{
			{Terms: reservation.Terms{Quantity: quantity}, Duration: 50},
			{Terms: reservation.Terms{Quantity: quantity}, End: now + 400, Duration: 70},
			{Terms: reservation.Terms{Quantity: quantity, Kind: reservation.Instances, Resources: resource.Vector{VCPUs: 3}}, End: now + 90},
			{Terms: reservation.Terms{Quantity: 3 * quantity, Kind: reservation.Instances, Resources: resource.Vector{VCPUs: 1}}, Duration: 200},
		} {
			plan, err := s.bookings.Offer(t.Context(), owner, req)
			if err == nil {
				list = append(list, answer{Plan: plan})
			} else {
				list = append(list, answer{Refusal: refusal(t, err)})
			}
		}
	}
	return list
}
