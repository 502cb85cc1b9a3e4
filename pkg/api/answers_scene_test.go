// SPDX-License-Identifier: Apache-2.0

package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api"
	"github.com/almanac-cloud/almanac/pkg/api/leases"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/policy"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/booking/memory"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// scene is an Almanac at one moment: the API over a service whose records are in memory. Time passes in
// it only between questions, and a question about what would be asks a copy of it.
type scene struct {
	t      *rapid.T
	rules  *policy.Enforcer
	hosts  []inventory.Host
	limits planning.Limits
	facts  *staging.Facts // nil if decisions ignore images
	// addresses are the floating IPs of the network outside that can be reserved.
	addresses []string
	now       span.Instant
	leadTime  int64 // seconds
	ids       int

	memory   *memory.Records
	bookings *booking.Service
	server   *api.Server
}

// open starts the service on the records that the scene has, which are new ones if it has none.
func (s *scene) open() {
	s.t.Helper()
	if s.memory == nil {
		s.memory = memory.New()
		for i, a := range s.addresses {
			must(s.t, s.memory.Enroll(s.t.Context(), address.Enrolled{ID: fmt.Sprint("address ", i), Network: "outside", Subnet: "subnet", Address: a}))
		}
	}
	now := func() span.Instant { return s.now }
	quiet := slog.New(slog.DiscardHandler)
	keeper, err := inventory.OpenSnapshotCache(s.t.Context(), hostList(s.hosts), inventory.SnapshotCacheOptions{
		Hosts: unset{}, Properties: unset{}, Now: now, Log: quiet,
	})
	must(s.t, err)
	s.bookings, err = booking.Open(s.t.Context(), booking.Options{
		Records: s.memory, Keys: s.memory, Reader: s.memory, Addresses: s.memory, Limits: s.limits,
		Defaults: planning.Defaults{Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete},
		Images:   func() *staging.Facts { return s.facts }, LeadTime: s.leadTime, Now: now, NewID: s.newID,
	}, keeper.Snapshot())
	must(s.t, err)
	s.server = api.New(api.Options{
		Booking: s.bookings, Reader: s.memory, Leases: s.memory, Series: s.memory, NewID: s.newID, Inventory: keeper, Authenticator: api.Keystone{Tokens: legible{}}, Policy: s.rules, BeforeEnd: 60, MaxBodyBytes: 1 << 20,
		Blazar: &leases.Options{BeforeEnd: 60, Addresses: s.memory, Neutron: outside{}},
		Now:    now, Monotonic: func() time.Duration { return time.Duration(s.now-noon) * time.Second },
		NewRequestID: func() string { return "req" }, Log: quiet, Registry: prometheus.NewRegistry(),
	})
}

// unset are the settings of operators who have set nothing.
type unset struct{}

func (unset) Overrides(context.Context) (map[string]inventory.Override, error) { return nil, nil }
func (unset) Hidden(context.Context) (map[string]bool, error)                  { return nil, nil }
func (unset) SaveHidden(context.Context, string, bool) error                   { return nil }
func (unset) ChangeOverride(context.Context, string, func(map[string]inventory.Override) (inventory.Override, error)) error {
	return nil
}

func (s *scene) newID() string {
	s.ids++
	return fmt.Sprintf("%08d-0000-4000-8000-000000000000", s.ids)
}

// copied returns a scene of its own with the same records, without the reservations that are gone.
// adjust changes it before it opens.
func (s *scene) copied(gone map[string]bool, adjust ...func(*scene)) *scene {
	s.t.Helper()
	c := *s
	c.memory = nil
	for _, f := range adjust {
		f(&c)
	}
	c.open()
	leases := map[string]reservation.Lease{}
	for _, l := range s.leases() {
		leases[l.ID] = l.Lease
	}
	of := map[string][]booking.Revision{} // by lease, or by the reservation's own id
	for _, r := range s.reservations() {
		if gone[r.ID] {
			continue
		}
		id := r.ID
		if r.Membership.LeaseID != "" {
			id = r.Membership.LeaseID
		}
		r.Version = 1
		of[id] = append(of[id], booking.Revision{Reservation: r})
	}
	for _, id := range slices.Sorted(maps.Keys(of)) {
		commit := booking.Commit{Revisions: of[id]}
		if l, is := leases[id]; is && of[id][0].Reservation.Membership.LeaseID == id {
			l.Version = 1
			commit.Lease = &l
		}
		must(s.t, c.memory.Commit(s.t.Context(), commit))
	}
	c.open()
	return &c
}

// exact returns the scene in which a request can have what an answer names and nothing more.
func (s *scene) exact(q asked) *scene {
	s.t.Helper()
	if q.maintained == nil {
		return s
	}
	return s.still()
}

// still returns a copy in which all reservations are about to start. Elsewhere others get other hosts for maintenance and for an
// extension, and answers do not name these moves (docs/adr/0042-movable.md).
func (s *scene) still() *scene {
	s.t.Helper()
	return s.copied(nil, func(c *scene) { c.leadTime = int64(s.end() - s.now) })
}

// reservations returns all reservations, by start, in any status.
func (s *scene) reservations() []reservation.Reservation {
	s.t.Helper()
	list, err := s.memory.List(s.t.Context(), reservation.Query{Statuses: reservation.Statuses})
	must(s.t, err)
	return list
}

// live returns the reservations that hold claims.
func (s *scene) live() []reservation.Reservation {
	return slices.DeleteFunc(s.reservations(), func(r reservation.Reservation) bool { return !r.Status.Live() })
}

// leases returns the leases, by start; a reservation without a lease is one.
func (s *scene) leases() []reservation.LeaseRecord {
	s.t.Helper()
	states, err := s.memory.LeaseStates(s.t.Context(), reservation.LeaseQuery{})
	must(s.t, err)
	ids := make([]string, len(states))
	for i := range states {
		ids[i] = states[i].ID
	}
	list, err := s.memory.LeasesOf(s.t.Context(), ids)
	must(s.t, err)
	return list
}

// passes lets time pass and carries out what is due.
func (s *scene) passes(seconds int64) {
	s.t.Helper()
	s.now = s.now.Add(seconds)
	if _, failed := s.bookings.CarryOut(s.t.Context()); len(failed) > 0 {
		s.t.Fatalf("carry out events: %v", failed)
	}
}

// inquiry is a request to the API.
type inquiry struct {
	by           string // a token of legible
	method, path string
	// version is the microversion of Blazar's form; empty means none.
	version string
	body    map[string]any
}

func (c inquiry) String() string {
	body, _ := json.Marshal(c.body)
	if c.version != "" {
		return fmt.Sprintf("%s %s (reservation %s) by %s: %s", c.method, c.path, c.version, c.by, body)
	}
	return fmt.Sprintf("%s %s by %s: %s", c.method, c.path, c.by, body)
}

// reply is the answer to a call.
type reply struct {
	inquiry inquiry
	status  int
	body    []byte
	refusal *v1.Refusal // nil if it is none
}

func (r reply) String() string { return fmt.Sprintf("%v\n    -> %d %s", r.inquiry, r.status, r.body) }

// granted reports whether the call did, or offers, what it asks for.
func (r reply) granted() bool { return r.status < 300 }

// send sends a call. An answer that is neither success, a refusal nor the user's mistake ends the test.
func (s *scene) send(c inquiry) reply {
	s.t.Helper()
	var body bytes.Buffer
	if c.body != nil {
		must(s.t, json.NewEncoder(&body).Encode(c.body))
	}
	request := httptest.NewRequestWithContext(s.t.Context(), c.method, c.path, &body)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("X-Auth-Token", c.by)
	if c.version != "" {
		request.Header.Set("OpenStack-API-Version", "reservation "+c.version)
	}
	recorder := httptest.NewRecorder()
	s.server.ServeHTTP(recorder, request)
	r := reply{inquiry: c, status: recorder.Code, body: recorder.Body.Bytes()}
	if r.status >= 300 {
		var e v1.ErrorAnswer
		must(s.t, json.Unmarshal(r.body, &e))
		r.refusal = e.Refusal
	}
	if !slices.Contains([]int{200, 201, 204, 400, 403, 404, 409}, r.status) {
		s.t.Fatalf("%v", r)
	}
	return r
}

// does sends a call that changes the scene, and prints it.
func (s *scene) does(c inquiry) reply {
	s.t.Helper()
	r := s.send(c)
	s.t.Logf("%v %v", s.now, r)
	return r
}

// printed prints what the scene consists of, beside its calls.
func (s *scene) printed() {
	for _, h := range s.hosts {
		s.t.Logf("host %s: capacity %v, used %v, %d instances, power %q, boots in %d s, reservable %v, %v",
			h.Name, h.Capacity, h.Used, h.InstanceCount, h.Power, h.BootSeconds, h.Reservable, h.Properties)
	}
	s.t.Logf("limits: %+v", s.limits)
	s.t.Logf("floating IPs: %s", strings.Join(s.addresses, ", "))
	if s.facts != nil {
		s.t.Logf("images: %+v of %v; pools: %v", s.facts.Site, s.facts.Images, s.facts.Pools)
	}
}

// clock formats an instant for a native body.
func clock(t span.Instant) string { return t.Time().Format(time.RFC3339) }

// minutes formats an instant for a body in Blazar's form, without its seconds.
func minutes(t span.Instant) string { return t.Time().Format("2006-01-02 15:04") }
