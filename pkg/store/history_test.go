// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// meter counts the rows that the statements of a store write and read.
type meter struct {
	slog.Handler
	written, read int64
}

func (m *meter) Enabled(context.Context, slog.Level) bool { return true }

func (m *meter) Handle(_ context.Context, r slog.Record) error {
	var verb string
	var rows int64
	for a := range r.Attrs {
		switch a.Key {
		case "sql":
			verb, _, _ = strings.Cut(a.Value.String(), " ")
		case "rows":
			rows = max(0, a.Value.Int64())
		}
	}
	if verb == "SELECT" {
		m.read += rows
	} else {
		m.written += rows
	}
	return nil
}

// cost is the cost of changes: the rows that the replica with the changes has written, the rows
// that a following replica has read, and the growth of the database.
type cost struct{ written, read, rows, bytes int64 }

func (c cost) minus(before cost) cost {
	return cost{c.written - before.written, c.read - before.read, c.rows - before.rows, c.bytes - before.bytes}
}

// history is a reservation that one replica changes and another follows.
type history struct {
	t                  *testing.T
	bookings, follower *booking.Service
	meters             [2]meter
	store              *Store
	now                span.Instant
	id                 string
	changes            int
}

func newHistory(t *testing.T, connection string) *history {
	t.Helper()
	h := &history{t: t, now: 2_000_000_000}
	snapshot, err := inventory.NewSnapshot([]inventory.Host{
		{Name: "a", Reservable: true, Capacity: resource.Vector{VCPUs: 8, MemoryMB: 16384, DiskGB: 100}},
	}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, bookings := range []**booking.Service{&h.bookings, &h.follower} {
		h.meters[i].Handler = slog.DiscardHandler
		h.store = openFor(t, connection, slog.New(&h.meters[i]))
		if _, err := h.store.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		*bookings, err = booking.Open(t.Context(), booking.Options{
			Records: h.store, Keys: h.store, Reader: h.store, Now: func() span.Instant { return h.now }, NewID: func() string { return "r" },
			Defaults: planning.Defaults{Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete},
		}, snapshot)
		if err != nil {
			t.Fatal(err)
		}
	}
	r, err := h.bookings.Book(t.Context(), booking.Caller{ProjectID: "demo"}, reservation.Request{
		Terms: reservation.Terms{Quantity: 1, BeforeEnd: 3600}, Duration: 600,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	h.id = r.ID
	return h
}

// change renames and extends the reservation n times, and lets the owner be warned of each new
// end. Half of the names are those that need the most escapes.
func (h *history) change(n int) cost {
	h.t.Helper()
	before := h.cost()
	for range n {
		h.changes++
		h.now++
		name, end := fmt.Sprint(h.changes), h.now+10_000
		if h.changes%2 == 0 {
			name = strings.Repeat("\U0010fffe", 250) + name
		}
		change := planning.Change{Name: &name, End: &end}
		if _, err := h.bookings.Change(h.t.Context(), booking.Caller{ProjectID: "demo"}, h.id, change); err != nil {
			h.t.Fatalf("change %d: %v", h.changes, err)
		}
		h.now += 10_000 - 3600
		if _, failed := h.bookings.CarryOut(h.t.Context()); len(failed) > 0 {
			h.t.Fatal(failed)
		}
		if err := h.follower.Follow(h.t.Context()); err != nil {
			h.t.Fatal(err)
		}
	}
	return h.cost().minus(before)
}

func (h *history) cost() cost {
	h.t.Helper()
	c := cost{written: h.meters[0].written, read: h.meters[1].read}
	var stored struct{ Rows, Bytes int64 }
	err := h.store.reader.Raw("SELECT COUNT(*) AS `rows`, SUM(size) AS `bytes` FROM (" +
		" SELECT LENGTH(state) + LENGTH(detail) AS size FROM changes UNION ALL SELECT LENGTH(detail) FROM events" +
		" UNION ALL SELECT LENGTH(name) FROM reservations) AS everything").Scan(&stored).Error
	if err != nil {
		h.t.Fatal(err)
	}
	c.rows, c.bytes = stored.Rows, stored.Bytes
	h.meters[1].read = c.read // this query is not the follower's
	return c
}

func TestTheHundredthChangeCostsWhatTheFiftiethDid(t *testing.T) {
	for name, start := range databases {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, start(t)())
			h.change(30) // the log of events has reached its greatest length
			once, twice := h.change(30), h.change(60)
			for _, part := range []struct {
				what        string
				once, twice int64
			}{
				{"rows written", once.written, twice.written}, {"rows read by a replica that follows", once.read, twice.read},
				{"rows stored", once.rows, twice.rows}, {"bytes stored", once.bytes, twice.bytes},
			} {
				if part.twice > 2*part.once*101/100 {
					t.Errorf("%s: 30 changes cost %d, and 60 more cost %d", part.what, part.once, part.twice)
				}
			}
			const most = 8000 // a change and a warning, with two names of 250 of the largest characters
			if each := once.bytes / 30; each > most {
				t.Errorf("a change stores %d bytes, want %d at most", each, most)
			}
		})
	}
}

func TestALogKeepsTheLastTwentyChangesAndWarnings(t *testing.T) {
	h := newHistory(t, databases["SQLite"](t)())
	h.change(45)
	stored, err := h.store.Get(t.Context(), h.id)
	if err != nil {
		t.Fatal(err)
	}
	count := make(map[reservation.EventType]int)
	for i, e := range stored.Events {
		count[e.Type]++
		if i > 0 && e.State == reservation.EventDone && e.Done < stored.Events[i-1].Done {
			t.Errorf("the log has %+v after %+v", e, stored.Events[i-1])
		}
	}
	// The last warning follows the last change.
	want := map[reservation.EventType]int{"created": 1, "start": 1, "changed": 20, "before_end": 20 + 1, "end": 1}
	if d := cmp.Diff(want, count); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
	trail, err := h.store.Trail(t.Context(), h.id, 0)
	if err != nil || len(trail) < 2*45 || trail[len(trail)-1].Reservation.Version != stored.Version {
		t.Errorf("the trail has %d changes: %v", len(trail), err)
	}
}

// An earlier version kept the events of all changes.
func TestALogThatHasGrownWithoutBoundIsCutAtTheNextChange(t *testing.T) {
	for name, start := range databases {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t, start(t)())
			var old []eventRow
			for i := range 2500 {
				old = append(old, eventRow{ReservationID: h.id, Seq: 100 + i, Type: "changed", State: "done", Detail: fmt.Sprint(i)})
			}
			if err := insert(h.store.writer, old); err != nil {
				t.Fatal(err)
			}
			snapshot, err := inventory.NewSnapshot(nil, nil, nil)
			if err != nil {
				t.Fatal(err)
			}
			if h.bookings, err = booking.Open(t.Context(), booking.Options{
				Records: h.store, Keys: h.store, Reader: h.store, Now: func() span.Instant { return h.now },
			}, snapshot); err != nil {
				t.Fatal(err)
			}
			name := "another"
			changed, err := h.bookings.Change(t.Context(), booking.Caller{ProjectID: "demo"}, h.id, planning.Change{Name: &name})
			if err != nil {
				t.Fatal(err)
			}
			stored, err := h.store.Get(t.Context(), h.id)
			if d := cmp.Diff(changed.Events, stored.Events); err != nil || d != "" || len(stored.Events) > 30 {
				t.Errorf("the log has %d events (%v; -of the bookings +stored):\n%s", len(stored.Events), err, d)
			}
		})
	}
}

// A server accepts no statement larger than max_allowed_packet, so nothing that each change
// writes may grow from change to change.
func TestNoNumberOfChangesOutgrowsAPacket(t *testing.T) {
	server := labtest.StartMariaDB(t)
	admin, err := sql.Open("mysql", server.DSN("almanac"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = admin.Close() })
	if _, err := admin.Exec("SET GLOBAL max_allowed_packet = 32768"); err != nil {
		t.Fatal(err)
	}
	h := newHistory(t, server.URL("almanac"))
	h.change(120)
	large := booked(sized("large", 1))
	large.Revisions[0].Reservation.HostProperties = strings.Repeat("x", 40_000)
	if err := h.store.Commit(t.Context(), large); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "max_allowed_packet") {
		t.Errorf("a reservation larger than a packet: %v, want an invalid fault that names the setting", err)
	}
}

// After the changes the rows contain the wanted events, in order, and unchanged events keep their
// rows.
func TestOfEventsOnlyWhatDiffersIsWritten(t *testing.T) {
	event := func(name string) eventRow { return eventRow{ReservationID: "r", Type: name} }
	log := func(names ...string) (rows []eventRow) {
		for i, name := range names {
			rows = append(rows, event(name))
			rows[i].Seq = 3 * i
		}
		return rows
	}
	for name, c := range map[string]struct {
		stored, wanted []eventRow
		written, gone  int
	}{
		"nothing changes":            {log("a", "b"), log("a", "b"), 0, 0},
		"one is added":               {log("a", "b"), log("a", "b", "c"), 1, 0},
		"one is carried out":         {log("a", "b", "end"), log("a", "B", "end"), 1, 0},
		"the oldest goes":            {log("a", "b", "c"), log("b", "c", "d"), 1, 1},
		"what is due is put off":     {log("a", "b", "c", "start", "end"), log("a", "c", "d", "start", "end"), 3, 1},
		"all go":                     {log("a", "b"), nil, 0, 2},
		"all come":                   {nil, log("a", "b"), 2, 0},
		"a first one goes and comes": {log("a", "b", "a"), log("b", "a"), 0, 1},
	} {
		write, gone := eventChanges(c.stored, c.wanted)
		if len(write) != c.written || len(gone) != c.gone {
			t.Errorf("%s: %d are written and %d cleared, want %d and %d", name, len(write), len(gone), c.written, c.gone)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOf(rapid.SampledFrom([]string{"a", "b", "c"}))
		stored, wanted := log(some.Draw(t, "stored")...), log(some.Draw(t, "wanted")...)
		rows := make(map[int]eventRow)
		for _, row := range stored {
			rows[row.Seq] = row
		}
		write, gone := eventChanges(stored, wanted)
		for _, seq := range gone {
			delete(rows, seq)
		}
		for _, row := range write {
			rows[row.Seq] = row
		}
		var got []string
		for seq := range 1000 {
			if row, ok := rows[seq]; ok {
				got = append(got, row.Type)
			}
		}
		var want []string
		for _, row := range wanted {
			want = append(want, row.Type)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("events (-want +got):\n%s", d)
		}
	})
}

func TestAChangeRecordHasTheLastEventOfEachType(t *testing.T) {
	events := []eventRow{
		{Type: "created", State: "done"}, {Type: "changed", State: "done", Detail: "1"}, {Type: "before_end", State: "done", Detail: "1"},
		{Type: "before_end", State: "done", Detail: "2"}, {Type: "changed", State: "done", Detail: "2"},
		{Type: "before_end", State: "pending"}, {Type: "end", State: "pending"},
	}
	want := []eventRow{events[0], events[3], events[4], events[5], events[6]}
	if d := cmp.Diff(want, latest(events)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
}
