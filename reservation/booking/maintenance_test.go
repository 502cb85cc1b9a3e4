// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// maintenance requests maintenance of hosts throughout [start, end), in seconds after base.
func maintenance(start, end int64, hosts ...string) reservation.Request {
	return reservation.Request{Terms: reservation.Terms{Name: "new memory", Maintenance: true}, Hosts: hosts, Start: at(start), End: at(end)}
}

func TestMaintenanceHasTheHostsThatItNamesWhateverTheirState(t *testing.T) {
	s := newScene(t, named("a", "b", "c", "d", "e"))
	s.host("b").Reservable = false
	s.host("c").Problem = "its nova-compute is down"
	s.host("d").Power = inventory.PowerSleeping
	s.observe(t)
	r := s.book(t, maintenance(0, 100, "d", "b", "c", "a", "a"))
	if got := slices.Sorted(slices.Values(claimed(r))); !slices.Equal(got, []string{"a", "b", "c", "d"}) || r.Quantity != 4 || r.Span != (span.Span{Start: at(0), End: at(100)}) {
		t.Errorf("the maintenance has %v in %v, quantity %d", got, r.Span, r.Quantity)
	}
	s.check(t)
}

func TestMaintenanceIsRefusedWhereAnyOfItsHostsIsPromised(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	s.book(t, only("b", during(1, 50, 150)))
	_, err := s.bookings.Book(t.Context(), owner, maintenance(0, 100, "a", "b"), nil)
	got := refusal(t, err)
	want := reservation.Block{Host: "b", Span: span.Span{Start: at(50), End: at(150)}}
	if got.Constraint != reservation.HostsFree || !slices.Equal(got.BlockedBy, []reservation.Block{want}) || got.EarliestStart != at(150) || got.LargestQuantity != 0 {
		t.Errorf("refused with %+v; want what is in the way, and the earliest start for both hosts", got)
	}
	if !strings.Contains(got.Message, "1 of the 2 hosts") {
		t.Errorf("the message is %q", got.Message)
	}
	r := s.book(t, maintenance(150, 200, "a", "b"))
	_, err = s.bookings.Book(t.Context(), owner, only("a", during(1, 199, 300)), nil)
	refusal(t, err)
	if _, err = s.bookings.Change(t.Context(), owner, r.ID, planning.Change{Start: new(at(149))}); refusal(t, err).EarliestStart == 0 {
		t.Errorf("the move onto a reservation is refused with %v", err)
	}
}

func TestRequestsForMaintenanceThatContradictThemselvesAreInvalid(t *testing.T) {
	s := newScene(t, named("a", "b"))
	alter := func(change func(*reservation.Request)) reservation.Request {
		req := maintenance(0, 100, "a")
		change(&req)
		return req
	}
	for field, req := range map[string]reservation.Request{
		"hosts":           alter(func(r *reservation.Request) { r.Hosts = []string{"a", "x"} }),
		"hosts ":          alter(func(r *reservation.Request) { r.Hosts = nil }),
		"hosts  ":         alter(func(r *reservation.Request) { r.Maintenance, r.Quantity = false, 1 }),
		"kind":            alter(func(r *reservation.Request) { r.Kind = reservation.Instances }),
		"host_properties": alter(func(r *reservation.Request) { r.HostProperties = `["=", "$name", "a"]` }),
		"image":           alter(func(r *reservation.Request) { r.Image = "ubuntu" }),
	} {
		_, err := s.bookings.Offer(t.Context(), owner, req)
		if f := fault.Of(err); f.Kind != fault.Invalid || f.Field != strings.TrimSpace(field) {
			t.Errorf("%s: %v, want an invalid fault of this field", field, err)
		}
	}
	r := s.book(t, maintenance(10, 100, "a"))
	if _, err := s.bookings.Change(t.Context(), owner, r.ID, planning.Change{Quantity: new(2)}); fault.Of(err).Field != "quantity" {
		t.Errorf("a change of the quantity: %v", err)
	}
}

func TestLimitsOfAProjectNeitherApplyToMaintenanceNorCountIt(t *testing.T) {
	limits := planning.Limits{Duration: 100, StartAhead: 1000, Hosts: 1, HostSeconds: 100, ExtensionWindow: 10}
	s := newScene(t, named("a", "b", "c"), limited(limits))
	r := s.book(t, maintenance(2000, 4000, "a", "b"))
	s.change(t, r.ID, planning.Change{End: new(at(5000))})
	s.book(t, during(1, 0, 100))
	if _, err := s.bookings.Book(t.Context(), owner, during(1, 200, 300), nil); refusal(t, err).Constraint != reservation.MaxHostHours {
		t.Errorf("the limit for reservations: %v", err)
	}
	s.restart(t)
	s.check(t)
}

func TestTheChecksOfEnforcementAreNotAskedAboutMaintenance(t *testing.T) {
	s := newScene(t, named("a"), func(o *booking.Options) {
		o.Enforcement = enforcement.New(enforcement.Options{Rules: enforcement.Rules{Enabled: []string{enforcement.MaxLeaseDuration}, MaxDuration: 50}})
	})
	if _, err := s.bookings.Book(t.Context(), owner, during(1, 0, 100), nil); !fault.Is(err, fault.Denied) {
		t.Fatalf("a reservation that lasts too long: %v", err)
	}
	r := s.book(t, maintenance(0, 100, "a"))
	s.change(t, r.ID, planning.Change{End: new(at(200))})
}

func TestHostsInMaintenanceAreNotFilledOrHealed(t *testing.T) {
	s := newScene(t, named("a", "b"))
	r := s.book(t, maintenance(0, 100, "a"))
	s.passTo(t, at(1))
	if got := s.bookings.Fillable(at(1), 0); len(got) > 0 {
		t.Errorf("preemptible instances may use %v", got)
	}
	failed := func(host string) (string, bool) { return "it is down", host == "a" }
	if after, changed, err := s.bookings.Heal(t.Context(), r.ID, failed); changed || err != nil {
		t.Errorf("healed to %v: %v", claimed(after), err)
	}
}

func TestTheOccupantsOfMaintenanceAreThoseThatNothingRemoves(t *testing.T) {
	s := newScene(t, named("a", "b", "c"))
	stays := s.book(t, reservation.Request{Terms: reservation.Terms{Quantity: 1, OnEnd: reservation.OnEndLeave}, Start: at(0), End: at(50)})
	goes := s.book(t, during(1, 0, 50))
	s.host("a").Instances = []inventory.Instance{
		{ID: "normal", Host: "a"}, {ID: "preemptible", Host: "a", Preemptible: true}, {ID: "of-live", Host: "a", Reservation: goes.ID},
		{ID: "of-over", Host: "a", Reservation: "r999"}, {ID: "left", Host: "a", Reservation: stays.ID},
	}
	s.host("c").Instances = []inventory.Instance{{ID: "elsewhere", Host: "c"}}
	s.observe(t)
	plan, err := s.bookings.Offer(t.Context(), owner, maintenance(50, 100, "b", "a"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, i := range s.bookings.Occupants(plan) {
		got = append(got, i.ID)
	}
	if want := []string{"normal", "of-over", "left"}; !slices.Equal(got, want) {
		t.Errorf("move %v first, want %v", got, want)
	}
}

// Whatever is booked, changed, canceled and healed, maintenance has exactly the hosts that it names,
// and none of them is promised to anybody else.
//
//make:test-drawn
func TestNoPromiseOverlapsMaintenance(t *testing.T) {
	names := []string{"a", "b", "c", "d"}
	rapid.Check(t, func(t *rapid.T) {
		s := newScene(t, named(names...))
		window := func() (int64, int64) {
			start := int64(s.clock()-base) + rapid.Int64Range(0, 60).Draw(t, "start")
			return start, start + rapid.Int64Range(1, 40).Draw(t, "duration")
		}
		wanted := map[string][]string{} // the hosts of each maintenance
		var ids []string
		note := func(r reservation.Reservation, err error, hosts []string) {
			if _, refused := errors.AsType[*reservation.Refusal](err); err != nil && !refused {
				t.Fatal(err)
			}
			if err == nil {
				ids = append(ids, r.ID)
				if r.Maintenance {
					wanted[r.ID] = hosts
				}
			}
		}
		act := map[string]func(*rapid.T){
			"maintain": func(t *rapid.T) {
				start, end := window()
				hosts := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, 3, rapid.ID[string]).Draw(t, "hosts")
				slices.Sort(hosts)
				r, err := s.bookings.Book(t.Context(), owner, maintenance(start, end, hosts...), nil)
				note(r, err, hosts)
			},
			"reserve": func(t *rapid.T) {
				start, end := window()
				req := during(rapid.IntRange(1, 3).Draw(t, "quantity"), start, end)
				if rapid.Bool().Draw(t, "instances") {
					req.Kind, req.Resources = reservation.Instances, resource.Vector{VCPUs: 4}
				}
				r, err := s.bookings.Book(t.Context(), owner, req, nil)
				note(r, err, nil)
			},
			"change": func(t *rapid.T) {
				if len(ids) == 0 {
					t.Skip("nothing is booked")
				}
				start, end := window()
				_, err := s.bookings.Change(t.Context(), owner, rapid.SampledFrom(ids).Draw(t, "id"), planning.Change{Start: new(at(start)), End: new(at(end))})
				if err != nil && fault.Of(err).Kind == fault.Internal {
					if _, refused := errors.AsType[*reservation.Refusal](err); !refused {
						t.Fatal(err)
					}
				}
			},
			"cancel or heal": func(t *rapid.T) {
				if len(ids) == 0 {
					t.Skip("nothing is booked")
				}
				id := rapid.SampledFrom(ids).Draw(t, "id")
				if rapid.Bool().Draw(t, "cancel") {
					_, _ = s.bookings.Cancel(t.Context(), owner, id) // it may be over
				} else if _, _, err := s.bookings.Heal(t.Context(), id, func(host string) (string, bool) { return "it is down", host == "a" }); err != nil {
					t.Fatal(err)
				}
			},
			"pass": func(t *rapid.T) { s.passTo(t, s.clock().Add(rapid.Int64Range(1, 20).Draw(t, "seconds"))) },
			"": func(t *rapid.T) {
				s.check(t)
				for _, r := range s.live(t) {
					if got := slices.Sorted(slices.Values(claimed(r))); r.Maintenance && fmt.Sprint(got) != fmt.Sprint(wanted[r.ID]) {
						t.Fatalf("the maintenance of %v has %v", wanted[r.ID], got)
					}
				}
			},
		}
		t.Repeat(act)
	})
}
