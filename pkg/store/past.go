// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// pastColumns are the columns of reservations for what they have held and what they have been promised.
type pastColumns struct {
	Released    int64 `gorm:"not null;default:0"`
	PromisedEnd int64 `gorm:"not null;default:0"`
}

func (pastColumns) TableName() string { return "reservations" }

// pastClaimRow is a claim that a reservation has released. It is never changed.
type pastClaimRow struct {
	ReservationID string `gorm:"primaryKey;size:36"`
	Version       int64  `gorm:"primaryKey;autoIncrement:false"` // of the reservation after the change that released it
	Seq           int    `gorm:"primaryKey;autoIncrement:false"`
	Host          string `gorm:"size:255;not null;index:idx_past_claims_host,priority:1"`
	EndAt         int64  `gorm:"not null;index:idx_past_claims_host,priority:2"`
	StartAt       int64  `gorm:"not null;index:idx_past_claims_host,priority:3"`
	Slices        int    `gorm:"not null"`
}

func (pastClaimRow) TableName() string { return "past_claims" }

// addPast adds what keeps the past: released claims, promised ends, and the sums of what was purged.
func addPast(tx *gorm.DB) error {
	if err := createMissing(tx, &pastClaimRow{}, &pastUsageRow{}, &purgedRow{}); err != nil {
		return err
	}
	return addColumns(tx, &pastColumns{}, "Released", "PromisedEnd")
}

func pastClaimRows(v booking.Revision) []pastClaimRow {
	rows := make([]pastClaimRow, len(v.Released))
	for i, c := range v.Released {
		rows[i] = pastClaimRow{v.Reservation.ID, v.Reservation.Version, i, c.Host, int64(c.Span.End), int64(c.Span.Start), c.Slices}
	}
	return rows
}

const pastClaimColumns = "reservation_id, version, host, end_at, start_at, slices"

func (row *pastClaimRow) fields(known texts) []any {
	return []any{known.into(&row.ReservationID), &row.Version, known.into(&row.Host), &row.EndAt, &row.StartAt, &row.Slices}
}

// mostPastClaims is the number of claims with which a page of Past ends, unless one reservation alone
// has more.
const mostPastClaims = 20_000

// Past implements api.History.
func (s *Store) Past(ctx context.Context, q reservation.PastQuery) (page []reservation.Past, more bool, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		var rows []*reservationRow
		found := following(tx, int64(q.After.Start), q.After.ID).Order("start_at, id").Limit(q.Limit).
			Where("status NOT IN ? OR released > 0", reservation.LiveStatuses).
			Where("start_at < ? OR released > 0", q.Overlaps.End).Where("end_at > ?", q.Overlaps.Start)
		if q.ProjectID != "" {
			found = owned(found, q.ProjectID)
		}
		if err := found.Find(&rows).Error; err != nil {
			return err
		}
		more = len(rows) == q.Limit
		ids := make([]string, len(rows))
		for i, row := range rows {
			ids[i] = row.ID
		}
		few, err := fewClaims(tx, ids, mostPastClaims)
		if err != nil {
			return err
		}
		more = more || few < len(rows)
		claims, err := heldBy(tx, ids[:few])
		if err != nil {
			return err
		}
		page, err = pastOf(tx, rows[:few], claims)
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("read what reservations held: %w", err)
	}
	return page, more, nil
}

// fewClaims returns how many of the first ids have at most so many claims together, at least one. It
// reads indexes alone.
func fewClaims(tx *gorm.DB, ids []string, most int) (int, error) {
	counts := make(map[string]int)
	for chunk := range slices.Chunk(ids, batch) {
		for _, table := range []any{&claimRow{}, &pastClaimRow{}} {
			var found []struct {
				ReservationID string
				Claims        int
			}
			err := tx.Model(table).Where("reservation_id IN ?", chunk).Group("reservation_id").
				Select("reservation_id, COUNT(*) AS claims").Find(&found).Error
			if err != nil {
				return 0, err
			}
			for _, f := range found {
				counts[f.ReservationID] += f.Claims
			}
		}
	}
	sum := 0
	for i, id := range ids {
		if sum += counts[id]; sum > most && i > 0 {
			return i, nil
		}
	}
	return len(ids), nil
}

// held are claims of reservations, by id.
type held struct {
	known    texts
	claims   map[string][]claimRow // of reservations that are over
	released map[string][]pastClaimRow
}

func newHeld() held {
	return held{make(texts), make(map[string][]claimRow), make(map[string][]pastClaimRow)}
}

// read adds the claims and the released claims that two queries of their tables select.
func (h held) read(claims, released *gorm.DB) error {
	err := scan(claims, claimColumns.names, claimColumns.into(h.known), func(c claimRow) {
		h.claims[c.ReservationID] = append(h.claims[c.ReservationID], c)
	})
	if err != nil {
		return err
	}
	return scan(released, pastClaimColumns, func(row *pastClaimRow) []any { return row.fields(h.known) }, func(c pastClaimRow) {
		h.released[c.ReservationID] = append(h.released[c.ReservationID], c)
	})
}

// ofOver selects the rows of a table that belong to reservations that are over.
func ofOver(tx *gorm.DB, table string) *gorm.DB {
	live := tx.Model(&reservationRow{}).Where("status IN ?", reservation.LiveStatuses).Select("id")
	return tx.Table(table).Where("reservation_id NOT IN (?)", live)
}

// heldBy returns all claims of reservations.
func heldBy(tx *gorm.DB, ids []string) (held, error) {
	h := newHeld()
	for chunk := range slices.Chunk(ids, batch) {
		claims := ofOver(tx, "claims").Where("reservation_id IN ?", chunk).Order("reservation_id, seq")
		if err := h.read(claims, tx.Table("past_claims").Where("reservation_id IN ?", chunk).Order("reservation_id, version, seq")); err != nil {
			return h, err
		}
	}
	return h, nil
}

// pastOf returns what reservations held. It reads their starts.
func pastOf(tx *gorm.DB, rows []*reservationRow, h held) (list []reservation.Past, err error) {
	at, ids := make(map[string]*reservationRow, len(rows)), make([]string, len(rows))
	for i, row := range rows {
		at[row.ID], ids[i] = row, row.ID
		row.Claims = h.claims[row.ID]
	}
	for chunk := range slices.Chunk(ids, batch) {
		var starts []eventRow
		if err := parts(tx, chunk).Where("type = ? AND state = ?", reservation.StartEvent, reservation.EventDone).Find(&starts).Error; err != nil {
			return nil, err
		}
		for _, e := range starts {
			at[e.ReservationID].Events = []eventRow{e} // the last one stays
		}
	}
	for _, row := range rows {
		r, err := row.reservation()
		if err != nil {
			return nil, err
		}
		past := reservation.Past{Reservation: r}
		for _, c := range h.released[row.ID] {
			claim := reservation.Claim{Host: c.Host, Span: spanOf(c.StartAt, c.EndAt), Slices: c.Slices}
			past.Released = append(past.Released, reservation.ReleasedClaim{Claim: claim, Version: c.Version})
		}
		list = append(list, past)
	}
	return list, nil
}

// PastOnHosts implements api.History.
func (s *Store) PastOnHosts(ctx context.Context, q reservation.PastHosts) (list []reservation.Past, unread string, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		list, unread, err = pastOnHosts(tx, q)
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("read what was held on hosts: %w", err)
	}
	return list, unread, nil
}

// pastOnHosts returns what was held on hosts in the past, at most a page. unread is the first host that
// was left for the next page.
func pastOnHosts(tx *gorm.DB, q reservation.PastHosts) (list []reservation.Past, unread string, err error) {
	on := func(found *gorm.DB) *gorm.DB {
		found = found.Where("end_at > ? AND start_at < ?", q.Overlaps.Start, q.Overlaps.End).Order("host, end_at, start_at").Limit(q.Limit + 1)
		if len(q.Hosts) > 0 {
			return found.Where("host IN ?", q.Hosts)
		}
		if q.Last != "" {
			found = found.Where("host <= ?", q.Last)
		}
		return found.Where("host > ?", q.After)
	}
	h := newHeld()
	if err := h.read(on(ofOver(tx, "claims")), on(tx.Table("past_claims"))); err != nil {
		return nil, "", err
	}
	unread = h.cut(q.Limit)
	var rows []*reservationRow
	for chunk := range slices.Chunk(h.ids(), batch) {
		var found []*reservationRow
		if err := tx.Where("id IN ?", chunk).Find(&found).Error; err != nil {
			return nil, "", err
		}
		rows = append(rows, found...)
	}
	slices.SortFunc(rows, func(a, b *reservationRow) int {
		return cmp.Or(cmp.Compare(a.StartAt, b.StartAt), cmp.Compare(a.ID, b.ID))
	})
	list, err = pastOf(tx, rows, h)
	return list, unread, err
}

// ids returns the reservations that have claims, sorted.
func (h held) ids() []string {
	ids := slices.Concat(slices.Collect(maps.Keys(h.claims)), slices.Collect(maps.Keys(h.released)))
	slices.Sort(ids)
	return slices.Compact(ids)
}

// cut removes the claims on the host at which there are more than limit, in the order of hosts, and on
// all later ones. It returns that host; empty if there are no more.
func (h held) cut(limit int) (unread string) {
	counts := make(map[string]int)
	for _, claims := range h.claims {
		for _, c := range claims {
			counts[c.Host]++
		}
	}
	for _, claims := range h.released {
		for _, c := range claims {
			counts[c.Host]++
		}
	}
	sum := 0
	for _, host := range slices.Sorted(maps.Keys(counts)) {
		if sum += counts[host]; sum > limit {
			unread = host
			break
		}
	}
	if unread == "" {
		return ""
	}
	for id, claims := range h.claims {
		if h.claims[id] = slices.DeleteFunc(claims, func(c claimRow) bool { return c.Host >= unread }); len(h.claims[id]) == 0 {
			delete(h.claims, id)
		}
	}
	for id, claims := range h.released {
		if h.released[id] = slices.DeleteFunc(claims, func(c pastClaimRow) bool { return c.Host >= unread }); len(h.released[id]) == 0 {
			delete(h.released, id)
		}
	}
	return unread
}

// Kept implements api.History.
func (s *Store) Kept(ctx context.Context) (kept reservation.Kept, err error) {
	var rows []purgedRow
	err = s.look(ctx, func(db *gorm.DB) error { return db.Limit(1).Find(&rows).Error })
	if err != nil {
		return kept, fmt.Errorf("read what was purged: %w", err)
	}
	for _, row := range rows {
		kept = reservation.Kept{From: span.Instant(row.KeptFrom), Purges: row.Purges}
	}
	return kept, nil
}
