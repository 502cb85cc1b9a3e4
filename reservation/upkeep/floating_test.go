// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// modelNeutron is a Neutron in memory, with the network "n". It implements upkeep.FloatingIPs and has
// the addresses of the pool.
type modelNeutron struct {
	there    []address.Floating
	enrolled []address.Enrolled
	made     int
	// fails is asked before each request, and before the tags of a new floating IP are set.
	fails func() error
}

func (m *modelNeutron) Enrolled(context.Context) ([]address.Enrolled, error) { return m.enrolled, nil }

func (m *modelNeutron) Floating(_ context.Context, network string, addresses []string) (list []address.Floating, err error) {
	for _, f := range m.there {
		if f.Network == network && slices.Contains(addresses, f.Address) {
			list = append(list, f)
		}
	}
	return list, m.fails()
}

func (m *modelNeutron) PutFloating(_ context.Context, f address.Floating) error {
	if err := m.fails(); err != nil {
		return err
	}
	if f.ID == "" {
		if slices.ContainsFunc(m.there, func(o address.Floating) bool { return o.Address == f.Address }) {
			return fault.New(fault.Conflict, "the address is in use")
		}
		m.made++
		f.ID = strconv.Itoa(m.made)
		m.there = append(m.there, f)
		if err := m.fails(); err != nil {
			return err
		}
	}
	i := slices.IndexFunc(m.there, func(o address.Floating) bool { return o.ID == f.ID })
	if i < 0 {
		return fault.New(fault.NotFound, "there is no such floating IP")
	}
	m.there[i].Reservation, m.there[i].Tagged = f.Reservation, true
	return nil
}

func (m *modelNeutron) DeleteFloating(_ context.Context, f address.Floating) error {
	if err := m.fails(); err != nil {
		return err
	}
	m.there = slices.DeleteFunc(m.there, func(o address.Floating) bool { return o.ID == f.ID })
	return nil
}

// never is a modelNeutron.fails without faults.
func never() error { return nil }

// newNetworks returns a Neutron whose addresses a, b and c are in the pool, and what carries out the
// reservations of the town there.
func newNetworks(w *town) (*modelNeutron, *upkeep.Networks) {
	m := &modelNeutron{fails: never}
	for _, ip := range []string{"a", "b", "c"} {
		m.enrolled = append(m.enrolled, address.Enrolled{ID: ip, Network: "n", Address: ip})
	}
	return m, &upkeep.Networks{
		Floating: m, Pool: m, Promises: w, Records: w, Leases: &shared{}, Now: w.Now, Log: slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil)),
	}
}

// bookAddresses makes a reservation of addresses that starts now.
func (w *town) bookAddresses(n int, status reservation.Status, addresses ...string) reservation.Reservation {
	r := w.book(n, 0)
	r.Kind, r.Status = reservation.Addresses, status
	for _, a := range addresses {
		r.Addresses = append(r.Addresses, address.Claim{Network: "n", Address: a})
	}
	w.set(r)
	return r
}

// wantFloating checks which floating IPs exist, each as "address reservation".
func (m *modelNeutron) wantFloating(t *testing.T, when string, want ...string) {
	t.Helper()
	var got []string
	for _, f := range m.there {
		got = append(got, f.Address+" "+f.Reservation)
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("%s there are %v, want %v", when, got, want)
	}
}

func TestFloatingIPsExistFromTheStartToTheEnd(t *testing.T) {
	w := newTown(t, "host")
	m, networks := newNetworks(w)
	r := w.bookAddresses(1, reservation.Starting, "a", "b")
	for range 2 { // it may be repeated
		if err := networks.Carry(t.Context(), r, reservation.StartEvent); err != nil {
			t.Fatal(err)
		}
		m.wantFloating(t, "after the start", "a "+r.ID, "b "+r.ID)
	}
	if f := m.there[0]; f.Project != r.ProjectID || !f.Tagged {
		t.Errorf("it is %+v", f)
	}
	if err := networks.Carry(t.Context(), r, reservation.BeforeEndEvent); err != nil {
		t.Error(err)
	}
	for range 2 {
		if err := networks.Carry(t.Context(), r, reservation.EndEvent); err != nil {
			t.Fatal(err)
		}
		m.wantFloating(t, "after the end")
	}
}

func TestAStartWaitsWhileSomebodyElseHasTheAddress(t *testing.T) {
	w := newTown(t, "host")
	m, networks := newNetworks(w)
	before := w.bookAddresses(1, reservation.Ending, "a")
	if err := networks.Carry(t.Context(), before, reservation.StartEvent); err != nil {
		t.Fatal(err)
	}
	r := w.bookAddresses(2, reservation.Starting, "a", "b")
	if err := networks.Carry(t.Context(), r, reservation.StartEvent); !fault.Is(err, fault.Conflict) {
		t.Errorf("the start: %v, want a conflict", err)
	}
	m.wantFloating(t, "while the start waits", "a "+before.ID)
	if err := networks.Carry(t.Context(), before, reservation.EndEvent); err != nil {
		t.Fatal(err)
	}
	if err := networks.Carry(t.Context(), r, reservation.StartEvent); err != nil {
		t.Error(err)
	}
	m.wantFloating(t, "then", "a "+r.ID, "b "+r.ID)
	if err := networks.Carry(t.Context(), before, reservation.EndEvent); err != nil { // a retry that comes late
		t.Fatal(err)
	}
	m.wantFloating(t, "after a late retry of the earlier end", "a "+r.ID, "b "+r.ID)
}

func TestAReservationThatWasCanceledOrIsOverIsNotStarted(t *testing.T) {
	w := newTown(t, "host")
	m, networks := newNetworks(w)
	r := w.bookAddresses(1, reservation.Canceled, "a")
	if err := networks.Carry(t.Context(), r, reservation.StartEvent); !fault.Is(err, fault.Conflict) {
		t.Errorf("a canceled one starts: %v", err)
	}
	late := w.bookAddresses(2, reservation.Starting, "b")
	w.pass(late.Span.Seconds())
	if err := networks.Carry(t.Context(), late, reservation.StartEvent); !fault.Is(err, fault.Conflict) {
		t.Errorf("one that is over starts: %v", err)
	}
	m.wantFloating(t, "without a start")
}

func TestTheJobRestoresWhatIsMissingAndRemovesWhatIsLeft(t *testing.T) {
	w := newTown(t, "host")
	m, networks := newNetworks(w)
	active, canceled := w.bookAddresses(1, reservation.Active, "a"), w.bookAddresses(2, reservation.Canceled, "b")
	w.bookAddresses(3, reservation.Pending, "c")
	m.there = []address.Floating{
		{ID: "left", Network: "n", Address: "b", Project: canceled.ProjectID, Reservation: canceled.ID},
		{ID: "somebody's", Network: "n", Address: "c", Project: "somebody", Reservation: id(9)}, // no record knows it
	}
	for range 2 {
		if err := networks.Job().Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		m.wantFloating(t, "after the job", "a "+active.ID, "c "+id(9))
	}
	m.there[0].Tagged = m.there[0].Reservation == "" // its owner changes the tags
	if err := networks.Job().Step(t.Context()); err != nil || !slices.ContainsFunc(m.there, func(f address.Floating) bool { return f.Reservation == active.ID && f.Tagged }) {
		t.Errorf("the tags are not set again: %v, %v", m.there, err)
	}
}

// Whatever fails, and wherever a start or an end stops, repeating it leaves exactly the floating IPs of
// the active reservations.
func TestStartsAndEndsOfFloatingIPsCanBeRepeatedAfterAnyFault(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTown(t, "host")
		m, networks := newNetworks(w)
		m.fails = func() error {
			if rapid.IntRange(0, 3).Draw(t, "fault") == 0 {
				return fault.New(fault.Unavailable, "Neutron does not answer")
			}
			return nil
		}
		r := w.bookAddresses(1, reservation.Starting, "a", "b")
		carry := func(event reservation.EventType) {
			for tries := 0; networks.Carry(w.ctx(), r, event) != nil; tries++ {
				if tries > 3 {
					m.fails = never
				}
			}
		}
		carry(reservation.StartEvent)
		for _, ip := range []string{"a", "b"} {
			if !slices.ContainsFunc(m.there, func(f address.Floating) bool { return f.Address == ip && f.Reservation == r.ID && f.Tagged }) {
				t.Fatalf("after the start there are %v", m.there)
			}
		}
		if rapid.Bool().Draw(t, "canceled") {
			r.Status = reservation.Canceled
			w.set(r)
			for tries := 0; networks.Job().Step(w.ctx()) != nil; tries++ {
				if tries > 3 {
					m.fails = never
				}
			}
		} else {
			carry(reservation.EndEvent)
		}
		if len(m.there) > 0 {
			t.Errorf("after the end there are %v", m.there)
		}
	})
}
