// SPDX-License-Identifier: Apache-2.0

package app

import (
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/config"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/store"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Each row is a phase in which almanacd can have been stopped.
func TestRemovalOpensWhatAlmanacHasClosedAndRefusesWhileHostsSleep(t *testing.T) {
	ours := controller.ReasonPrefix + "1: it is switched off while it is not needed"
	for _, row := range []struct {
		name           string
		service        controller.Service
		phase          energy.Phase
		closed, asleep bool
	}{
		{"a host as any other", controller.Service{Up: true}, energy.Awake, false, false},
		{"a host that an operator has disabled", controller.Service{Disabled: true, Reason: "a new disk"}, energy.Awake, false, false},
		{"closed, and not ordered off", controller.Service{Up: true, Disabled: true, Reason: ours}, energy.Draining, true, false},
		{"closed, and forgotten by the database", controller.Service{Up: true, Disabled: true, Reason: ours}, energy.Awake, true, false},
		{"closed and down, and forgotten by the database", controller.Service{Disabled: true, Reason: ours}, energy.Awake, true, true},
		{"just ordered off", controller.Service{Up: true, Disabled: true, Reason: ours}, energy.Stopping, true, true},
		{"off", controller.Service{Disabled: true, Reason: ours}, energy.Asleep, true, true},
		{"off, and enabled by hand", controller.Service{}, energy.Asleep, false, true},
		{"ordered on in a wake test", controller.Service{Disabled: true, Reason: ours}, energy.Waking, true, true},
		{"awake again, and open", controller.Service{Up: true}, energy.Waking, false, false},
		{"did not wake", controller.Service{Disabled: true, Reason: ours}, energy.Failed, true, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := switchedBy(map[string]controller.Service{"cmp-006": row.service},
				map[string]energy.Record{"cmp-006": {Phase: row.phase}, "gone": {Phase: energy.Asleep}})
			if slices.Contains(got.closed, "cmp-006") != row.closed || slices.Contains(got.asleep, "cmp-006") != row.asleep {
				t.Errorf("the closed hosts are %v, the sleeping ones %v", got.closed, got.asleep)
			}
			err := got.refusal()
			if fault.Is(err, fault.Conflict) != row.asleep {
				t.Errorf("the refusal is %v", err)
			}
			if row.asleep && !strings.Contains(err.Error(), "almanac energy host on cmp-006") {
				t.Errorf("the refusal does not name the command that wakes the host: %v", err)
			}
		})
	}
}

func TestRemovalRefusesWhileTheEndOfAReservationIsNotCarriedOut(t *testing.T) {
	hosts := []inventory.Host{{Name: "cmp-001", Instances: []inventory.Instance{
		{ID: "by flavor", Name: "first", Flavor: inventory.Flavor{ExtraSpecs: map[string]string{inventory.ReservationMark: "r"}}},
		{ID: "by hint", Name: "second", Reservation: "r"},
		{ID: "another", Name: "third"},
	}}}
	over := func(id string, status reservation.Status, end reservation.OnEnd) reservation.Reservation {
		return reservation.Reservation{ID: id, Status: status, Terms: reservation.Terms{OnEnd: end}}
	}
	for _, row := range []struct {
		name    string
		r       reservation.Reservation
		refused bool
	}{
		{"canceled, and its servers will be deleted", over("r", reservation.Canceled, reservation.OnEndDelete), true},
		{"ended, and its servers will be shelved", over("r", reservation.Ended, reservation.OnEndShelve), true},
		{"ended, and its servers stay", over("r", reservation.Ended, reservation.OnEndStop), false},
		{"live, which only --force passes", over("r", reservation.Active, reservation.OnEndDelete), false},
		{"of other servers", over("q", reservation.Canceled, reservation.OnEndDelete), false},
	} {
		t.Run(row.name, func(t *testing.T) {
			err := ending(hosts, []reservation.Reservation{row.r})
			if fault.Is(err, fault.Conflict) != row.refused {
				t.Fatalf("got %v", err)
			}
			if row.refused && (!strings.Contains(err.Error(), "first (by flavor), second (by hint)") || strings.Contains(err.Error(), "third")) {
				t.Errorf("the refusal does not name the servers: %v", err)
			}
		})
	}
}

func TestADryRunReportsThatARemovalWouldBeRefused(t *testing.T) {
	const runs, live = "almanacd runs (almanacd-1)", "reservation r of project p is active"
	cfg, err := config.Load(nil, nil, map[string]string{"OS_DATABASE__CONNECTION": "sqlite:///" + filepath.Join(t.TempDir(), "almanac.db")})
	if err != nil {
		t.Fatal(err)
	}
	open := func(replica string) *store.Store {
		db, err := OpenStore(t.Context(), cfg, replica, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	almanacd, self := open("almanacd-1"), open("bootstrap")
	if _, err := almanacd.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := almanacd.Present(t.Context(), time.Hour); err != nil {
		t.Fatal(err)
	}
	booked := reservation.Reservation{ID: "r", ProjectID: "p", Status: reservation.Active, Span: span.Span{Start: 100, End: 200}, Version: 1}
	if err := almanacd.Commit(t.Context(), booking.Commit{Revisions: []booking.Revision{{Reservation: booked}}}); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		running, force bool
		refused        string // the beginning of the refusal; empty means none
		reported       []string
	}{
		{true, false, runs, []string{"refuse: " + runs, "refuse without --force: " + live}},
		{true, true, runs, []string{"refuse: " + runs}},
		{false, false, live, []string{"refuse without --force: " + live}},
		{false, true, "", nil},
	} {
		if !row.running {
			if err := almanacd.Leave(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		err := (&removing{Removal: Removal{Force: row.force}, db: self}).unused(t.Context(), "bootstrap")
		if fault.Is(err, fault.Conflict) != (row.refused != "") || err != nil && !strings.Contains(err.Error(), row.refused) {
			t.Errorf("almanacd runs %v, --force %v: got %v, want %q", row.running, row.force, err, row.refused)
		}
		var reported []string
		dry := removing{Removal: Removal{Force: row.force, DryRun: true, Report: func(what string) { reported = append(reported, what) }}, db: self}
		if err := dry.unused(t.Context(), "bootstrap"); err != nil {
			t.Errorf("the dry run fails: %v", err)
		}
		if !slices.EqualFunc(reported, row.reported, strings.HasPrefix) {
			t.Errorf("almanacd runs %v, --force %v: the dry run reports %q, want %q", row.running, row.force, reported, row.reported)
		}
	}
}
