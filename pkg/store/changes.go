// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// The table changes has a row for each commit. It is the change log that replicas follow, the
// outbox of notifications, and the audit trail.

// entry returns the row of the change log for a commit; row is the reservation after it.
func (s *Store) entry(cause reservation.Cause, row *reservationRow) (changeRow, error) {
	state, err := stateOf(*row)
	if err != nil {
		return changeRow{}, fmt.Errorf("encode its state: %w", err)
	}
	return changeRow{
		ReservationID: row.ID, Version: row.Version,
		Action: string(cause.Action), ProjectID: row.ProjectID, UserID: cause.UserID, RequestID: cause.RequestID,
		At: row.Updated, Detail: cause.Detail, State: state, Token: s.newToken(), Sent: !s.options.Outbox, Hooked: !s.options.Webhooks,
	}, nil
}

// newToken returns a token that tells one transaction from all others; empty where none is needed.
func (s *Store) newToken() string {
	if s.options.NewToken == nil {
		return ""
	}
	return s.options.NewToken()
}

// stateOf returns a reservation in the form in which the change log stores it. It does not escape
// HTML, because filters contain many of these characters.
func stateOf(row reservationRow) (string, error) {
	row.Events = latest(row.Events)
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(row)
	return strings.TrimSuffix(text.String(), "\n"), err
}

// latest returns the events that have not happened, and the last one of each type that has. Change
// records contain only these, so that a long history is not copied into each record.
func latest(events []eventRow) []eventRow {
	var list []eventRow
	seen := make(map[string]bool)
	for _, e := range slices.Backward(events) {
		if e.State == string(reservation.EventDone) && seen[e.Type] {
			continue
		}
		seen[e.Type] = seen[e.Type] || e.State == string(reservation.EventDone)
		list = append(list, e)
	}
	slices.Reverse(list)
	return list
}

func (row changeRow) change() (reservation.Change, error) {
	var state reservationRow
	if err := json.Unmarshal([]byte(row.State), &state); err != nil {
		return reservation.Change{}, fmt.Errorf("decode change %d of the log: %w", row.Seq, err)
	}
	r, err := state.reservation()
	return reservation.Change{
		Place: row.Seq, At: span.Instant(row.At), Reservation: r,
		Cause: reservation.Cause{
			Action: reservation.Action(row.Action), UserID: row.UserID, RequestID: row.RequestID, Detail: row.Detail,
		},
	}, err
}

// Trail returns the stored changes of a reservation, the oldest first. A limit of 0 means no limit.
func (s *Store) Trail(ctx context.Context, id string, limit int) ([]reservation.Change, error) {
	return s.changes(ctx, limit, func(db *gorm.DB) *gorm.DB { return db.Where("reservation_id = ?", id).Order("version") })
}

// Unsent returns changes whose notifications were not sent yet, sorted by place, at most limit; 0
// means no limit. A change with an earlier place may appear later.
func (s *Store) Unsent(ctx context.Context, limit int) ([]reservation.Change, error) {
	return s.changes(ctx, limit, func(db *gorm.DB) *gorm.DB { return db.Where("sent = ?", false).Order("seq") })
}

// LastChange implements api.History. It reads the end of one index.
func (s *Store) LastChange(ctx context.Context) (place int64, err error) {
	err = s.look(ctx, func(db *gorm.DB) error {
		return db.Raw("SELECT COALESCE(MAX(`seq`), 0) FROM `changes`").Scan(&place).Error
	})
	return place, fault.While(err, "read the end of the log of changes")
}

// countedMost is the largest number that Waiting returns.
const countedMost = 10_000

// Waiting returns how many changes wait to be sent, at most countedMost, and when the first of them
// was made; 0 if none waits. It reads only the index and one row.
func (s *Store) Waiting(ctx context.Context) (count int, first span.Instant, err error) {
	var found struct {
		Waiting int
		First   int64
	}
	err = s.look(ctx, func(db *gorm.DB) error {
		return db.Raw("SELECT (SELECT COUNT(*) FROM (SELECT 1 FROM `changes` WHERE `sent` = ? LIMIT ?) AS `some`) AS `waiting`,"+
			" COALESCE((SELECT `changed_at` FROM `changes` WHERE `sent` = ? ORDER BY `seq` LIMIT 1), 0) AS `first`",
			false, countedMost, false).Scan(&found).Error
	})
	if err != nil {
		return 0, 0, fmt.Errorf("count the changes that wait to be sent: %w", err)
	}
	return found.Waiting, span.Instant(found.First), nil
}

// changes returns the entries of the log of changes that scope selects, at most limit; 0 means all.
func (s *Store) changes(ctx context.Context, limit int, scope func(db *gorm.DB) *gorm.DB) ([]reservation.Change, error) {
	var rows []changeRow
	err := s.look(ctx, func(db *gorm.DB) error {
		found := scope(db)
		if limit > 0 {
			found = found.Limit(limit)
		}
		return found.Find(&rows).Error
	})
	if err != nil {
		return nil, fmt.Errorf("read the log of changes: %w", err)
	}
	list := make([]reservation.Change, len(rows))
	for i, row := range rows {
		if list[i], err = row.change(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// MarkSent records that the changes at these places were sent. It fails with job.ErrLost and
// records nothing if another process has acquired the lease.
func (s *Store) MarkSent(ctx context.Context, lease job.Lease, places []int64) error {
	err := s.writeUnder(ctx, lease, func(tx *gorm.DB) error {
		for chunk := range slices.Chunk(places, batch) {
			if err := tx.Model(&changeRow{}).Where("seq IN ?", chunk).Update("sent", true).Error; err != nil {
				return err
			}
		}
		return nil
	})
	return fault.While(err, "mark changes as sent")
}
