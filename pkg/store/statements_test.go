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

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// statements gathers verb and table of the statements that a store logs.
type statements struct {
	slog.Handler
	seen []string
}

var table = regexp.MustCompile("(?:INTO|FROM|UPDATE) `(\\w+)`")

func (s *statements) Enabled(context.Context, slog.Level) bool { return true }

func (s *statements) Handle(_ context.Context, r slog.Record) error {
	for a := range r.Attrs {
		if found := table.FindStringSubmatch(a.Value.String()); a.Key == "sql" && found != nil {
			s.seen = append(s.seen, strings.Fields(a.Value.String())[0]+" "+found[1])
		}
	}
	return nil
}

func TestACallTakesFewStatements(t *testing.T) {
	log := &statements{Handler: slog.DiscardHandler}
	s := openMigrated(t, slog.New(log))
	changed := sized("r", 4)
	changed.Version = 2
	changed.Events[0].State = reservation.Done
	grown := sized("r", 5)
	grown.Version = 3
	grown.Events = changed.Events
	page := func(ctx context.Context) error {
		_, err := s.List(ctx, reservation.Query{Marker: "a", Limit: 100})
		return err
	}
	for _, id := range []string{"a", "b"} {
		if err := s.Create(t.Context(), sized(id, 1), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, call := range []struct {
		name string
		act  func(ctx context.Context) error
		want []string
	}{
		{"create", func(ctx context.Context) error {
			return s.Create(ctx, sized("r", 4), &reservation.Key{ProjectID: "demo", Key: "k"})
		}, []string{"INSERT idempotency_keys", "INSERT reservations", "INSERT claims", "INSERT events"}},
		{"carry out an event", func(ctx context.Context) error { return s.Update(ctx, changed) },
			[]string{"UPDATE reservations", "SELECT claims", "SELECT events", "DELETE events", "INSERT events"}},
		{"grow", func(ctx context.Context) error { return s.Update(ctx, grown) },
			[]string{"UPDATE reservations", "SELECT claims", "SELECT events", "INSERT claims"}},
		{"list", page, []string{"SELECT reservations", "SELECT reservations", "SELECT claims", "SELECT events"}},
		{"get", func(ctx context.Context) error {
			_, err := s.Get(ctx, "r")
			return err
		}, []string{"SELECT reservations", "SELECT claims", "SELECT events"}},
	} {
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
	if err := s.Create(t.Context(), r, nil); err != nil {
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
		if err := s.Create(t.Context(), r, nil); err != nil {
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
