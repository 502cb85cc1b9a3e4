// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// statements collects verb and table of the statements that a store logs.
type statements struct {
	slog.Handler
	seen []string
}

var table = regexp.MustCompile("(?:INTO|IGNORE INTO|FROM|UPDATE) `(\\w+)`")

func (s *statements) Enabled(context.Context, slog.Level) bool { return true }

func (s *statements) Handle(_ context.Context, r slog.Record) error {
	for a := range r.Attrs {
		if found := table.FindStringSubmatch(a.Value.String()); a.Key == "sql" && found != nil {
			s.seen = append(s.seen, strings.Fields(a.Value.String())[0]+" "+found[1])
		}
	}
	return nil
}

// in returns the call that commits c.
func in(s *Store, c booking.Commit) func(ctx context.Context) error {
	return func(ctx context.Context) error { return s.Commit(ctx, c) }
}

// call is a call of a Store, with the statements that it should send.
type call struct {
	name string
	act  func(ctx context.Context) error
	want []string
}

// commits returns calls in this order, on node-0 to node-3 in version 1.
func commits(s *Store) []call {
	again := booked(sized("r", 4))
	again.Key = &reservation.Key{ProjectID: "demo", Key: "k"}
	for i := range again.Hosts {
		again.Hosts[i].Version = 1
	}
	carried := booking.Commit{Revisions: []booking.Revision{{Reservation: sized("r", 4)}}}
	carried.Revisions[0].Reservation.Version, carried.Revisions[0].Reservation.Events[0].State = 2, reservation.EventDone
	grown := booking.Commit{Revisions: []booking.Revision{{Reservation: sized("r", 5)}}, Hosts: []booking.HostVersion{{Host: "node-4"}}}
	grown.Revisions[0].Reservation.Version, grown.Usage = 3, booking.Usage{Hosts: 1, Raises: true, Known: new(int64(2))}
	return []call{
		{"book", in(s, again), []string{
			"INSERT idempotency_keys", "UPDATE host_versions", "INSERT reservations", "INSERT claims", "INSERT events",
			"INSERT changes", "UPDATE project_usage",
		}},
		{"carry out an event", in(s, carried), []string{
			"UPDATE reservations", "SELECT claims", "SELECT events", "INSERT events", "INSERT changes",
		}},
		{"grow", in(s, grown), []string{
			"INSERT host_versions", "UPDATE reservations", "SELECT claims", "INSERT claims", "SELECT events", "INSERT events",
			"INSERT changes", "UPDATE project_usage",
		}},
	}
}

// questions returns the calls after commits, which leave six entries in the log.
func questions(s *Store) []call {
	const last = 6
	return []call{
		{"list", func(ctx context.Context) error {
			_, err := s.List(ctx, reservation.Query{Marker: "a", Limit: 100})
			return err
		}, []string{"SELECT reservations", "SELECT reservations", "SELECT claims", "SELECT events"}},
		{"get", func(ctx context.Context) error {
			_, err := s.Get(ctx, "r")
			return err
		}, []string{"SELECT reservations", "SELECT claims", "SELECT events"}},
		{"list the states of all leases", func(ctx context.Context) error {
			_, err := s.LeaseStates(ctx, reservation.LeaseQuery{ProjectID: "demo"})
			return err
		}, []string{"SELECT lease_groups", "SELECT reservations", "SELECT reservations"}},
		{"find leases by name", func(ctx context.Context) error {
			_, err := s.LeaseStates(ctx, reservation.LeaseQuery{ProjectID: "demo", Name: "course", Limit: 100})
			return err
		}, []string{"SELECT lease_groups", "SELECT reservations", "SELECT reservations"}},
		{"read three leases", func(ctx context.Context) error {
			_, err := s.LeasesOf(ctx, []string{"a", "b", "r"})
			return err
		}, []string{"SELECT lease_groups", "SELECT reservations", "SELECT reservations", "SELECT claims", "SELECT events"}},
		{"read no leases", func(ctx context.Context) error {
			_, err := s.LeasesOf(ctx, nil)
			return err
		}, nil},
		{"keep decisions", func(ctx context.Context) error {
			return s.KeepDecisions(ctx, []placing.Decision{{RequestID: "req-1", Instances: []string{"i", "j"}}, {Instances: []string{"i"}}})
		}, []string{"INSERT decisions", "INSERT decision_subjects"}},
		{"look a decision up", func(ctx context.Context) error {
			_, err := s.Decisions(ctx, "j")
			return err
		}, []string{"SELECT decisions"}},
		{"remember instances", func(ctx context.Context) error {
			return s.SaveInstanceRecords(ctx, []string{"i", "j"}, inventory.InstanceRecord{Reservation: "r"}, 7)
		}, []string{"INSERT instance_records"}},
		{"recognize some", func(ctx context.Context) error {
			_, err := s.InstanceRecords(ctx, "i", "j", "k")
			return err
		}, []string{"SELECT instance_records"}},
		{"change the power of two hosts", func(ctx context.Context) error {
			return s.ChangePower(ctx, job.Lease{}, []string{"a", "b"}, func(stored map[string]energy.Record) ([]energy.Entry, error) {
				stored["a"] = energy.Record{Host: "a", Phase: energy.Asleep}
				return []energy.Entry{{Host: "a"}, {Host: "b"}}, nil
			})
		}, []string{"UPDATE leases", "INSERT leases", "UPDATE leases", "SELECT power_records", "INSERT power_records", "INSERT power_audit"}},
		{"change nothing of the power of two hosts", func(ctx context.Context) error {
			return s.ChangePower(ctx, job.Lease{}, []string{"a", "b"}, func(map[string]energy.Record) ([]energy.Entry, error) { return nil, nil })
		}, []string{"UPDATE leases", "SELECT power_records"}},
		{"look for evictions that nobody carries out any more", func(ctx context.Context) error {
			_, err := s.TakeEvictions(ctx)
			return err
		}, []string{"SELECT evictions"}},
		{"find nothing new", func(ctx context.Context) error {
			_, err := s.Recall(ctx, booking.Recall{Since: last})
			return err
		}, []string{"SELECT changes"}},
		{"find one's own commits alone", func(ctx context.Context) error {
			_, err := s.Recall(ctx, booking.Recall{Known: func(string) int64 { return 9 }})
			return err
		}, []string{"SELECT changes"}},
		{"learn of a commit", func(ctx context.Context) error {
			_, err := s.Recall(ctx, booking.Recall{Since: last - 1})
			return err
		}, []string{
			"SELECT changes", "SELECT changes", "SELECT reservations", "SELECT claims", "SELECT reservations", "SELECT host_versions",
			"SELECT reservations", "SELECT claims", "SELECT events",
		}},
		{"learn all when the service starts", func(ctx context.Context) error {
			_, err := s.Recall(ctx, booking.Recall{All: true})
			return err
		}, []string{"SELECT changes", "SELECT reservations", "SELECT claims", "SELECT events", "SELECT host_versions"}},
	}
}

func TestACallTakesFewStatements(t *testing.T) {
	log := &statements{Handler: slog.DiscardHandler}
	s := openMigrated(t, slog.New(log))
	for _, id := range []string{"a", "b"} {
		if err := s.Commit(t.Context(), booked(sized(id, 0))); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Commit(t.Context(), booked(sized("c", 4))); err != nil {
		t.Fatal(err)
	}
	l := reservation.Lease{ID: "l", ProjectID: "demo", Name: "course", Version: 1}
	if err := s.Commit(t.Context(), booking.Commit{Lease: &l}); err != nil {
		t.Fatal(err)
	}
	for _, call := range append(commits(s), questions(s)...) {
		log.seen = nil
		if err := call.act(t.Context()); err != nil {
			t.Fatalf("%s: %v", call.name, err)
		}
		if d := cmp.Diff(call.want, log.seen); d != "" {
			t.Errorf("%s (-want +got):\n%s", call.name, d)
		}
	}
}

func TestTheLogHasNoValues(t *testing.T) {
	var text strings.Builder
	s := openMigrated(t, slog.New(slog.NewTextHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	r := sized("r", 1)
	r.Name = "a private matter"
	if err := s.Commit(t.Context(), booking.Commit{Revisions: []booking.Revision{{Reservation: r}}}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "INSERT INTO `reservations`") {
		t.Error("the statements are not in the log")
	}
	if strings.Contains(text.String(), r.Name) {
		t.Errorf("the log has %q", r.Name)
	}
}

func TestAPageIsReadOffAnIndexInOrder(t *testing.T) {
	s := openMigrated(t, nil)
	for i := range 200 {
		r := sized(fmt.Sprint(i), 1)
		r.Span.Start += span.Instant(i)
		if err := s.Commit(t.Context(), booking.Commit{Revisions: []booking.Revision{{Reservation: r}}}); err != nil {
			t.Fatal(err)
		}
	}
	for index, q := range map[string]reservation.Query{
		"idx_reservations_project": {ProjectID: "demo", Marker: "100", Limit: 10},
		"idx_reservations_start":   {Marker: "100", Limit: 10},
	} {
		statement := s.reader.ToSQL(func(tx *gorm.DB) *gorm.DB {
			var rows []reservationRow
			return page(s.reader, q).Session(&gorm.Session{DryRun: true}).Find(&rows)
		})
		var plan []struct{ Detail string }
		if err := s.reader.Raw("EXPLAIN QUERY PLAN " + statement).Scan(&plan).Error; err != nil {
			t.Fatal(err)
		}
		if len(plan) != 1 || !strings.Contains(plan[0].Detail, "USING INDEX "+index) || !strings.Contains(plan[0].Detail, "start_at>?") {
			t.Errorf("%s\nis read as %v, want a search in %s alone", statement, plan, index)
		}
	}
}

func TestTheStatesOfAProjectsLeasesAreFoundByItsIndex(t *testing.T) {
	s := openMigrated(t, nil)
	for what, found := range map[string]*gorm.DB{
		"leases": s.reader.Table("lease_groups"), "own": unattached(s.reader.Table("reservations")), "members": s.reader.Table("reservations").Where("lease_id <> ''"),
	} {
		var plan []struct{ Detail string }
		statement := s.reader.ToSQL(func(*gorm.DB) *gorm.DB {
			return selected(found, reservation.LeaseQuery{ProjectID: "demo"}).Select("version").Session(&gorm.Session{DryRun: true}).Find(&plan)
		})
		if err := s.reader.Raw("EXPLAIN QUERY PLAN " + statement).Scan(&plan).Error; err != nil {
			t.Fatal(err)
		}
		if text := fmt.Sprint(plan); !strings.Contains(text, "(project_id=?") && !strings.Contains(text, "(lease_id=?") || strings.Contains(text, "SCAN") {
			t.Errorf("%s: %s\nis read as %v, want a search by the project, or of what belongs to no lease", what, statement, plan)
		}
	}
}

func TestDecisionsAreFoundByIndexes(t *testing.T) {
	s := openMigrated(t, nil)
	lookup := s.reader.ToSQL(func(tx *gorm.DB) *gorm.DB {
		var rows []decisionRow
		return about(s.reader, "i").Session(&gorm.Session{DryRun: true}).Find(&rows)
	})
	var plan []struct{ Detail string }
	if err := s.reader.Raw("EXPLAIN QUERY PLAN " + lookup).Scan(&plan).Error; err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SEARCH decision_subjects USING", "SEARCH decisions USING INDEX idx_decisions_hash"} {
		if !strings.Contains(fmt.Sprint(plan), want) {
			t.Errorf("%s\nis read as %v, without %q", lookup, plan, want)
		}
	}
	if strings.Contains(fmt.Sprint(plan), "TEMP B-TREE") || strings.Contains(fmt.Sprint(plan), "SCAN decision") {
		t.Errorf("%s\nis read as %v, which sorts or reads all", lookup, plan)
	}
}

func TestAPageOfTheAuditIsReadOffAnIndex(t *testing.T) {
	s := openMigrated(t, nil)
	for host, want := range map[string]string{"a": "USING INDEX idx_power_audit_host", "": "USING INTEGER PRIMARY KEY"} {
		statement := s.reader.ToSQL(func(tx *gorm.DB) *gorm.DB {
			var rows []powerEntryRow
			return entries(s.reader, host, 100, 10).Session(&gorm.Session{DryRun: true}).Find(&rows)
		})
		var plan []struct{ Detail string }
		if err := s.reader.Raw("EXPLAIN QUERY PLAN " + statement).Scan(&plan).Error; err != nil {
			t.Fatal(err)
		}
		if len(plan) != 1 || !strings.Contains(plan[0].Detail, want) {
			t.Errorf("%s\nis read as %v, want a search %s alone", statement, plan, want)
		}
	}
}
