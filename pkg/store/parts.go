// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"database/sql"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/reservation"
)

// This file reads reservations by the thousand. gorm's Find would take most of the time.

// loadParts reads the claims, events and addresses of rows.
func loadParts(tx *gorm.DB, rows []*reservationRow) error {
	for chunk := range slices.Chunk(rows, batch) {
		ids, known := make([]string, len(chunk)), make(texts)
		for i := range chunk {
			ids[i] = known.one(chunk[i].ID)
		}
		err := readParts(tx, chunk, known, func(table string) *gorm.DB { return parts(tx.Table(table), ids) })
		if err != nil {
			return err
		}
	}
	return nil
}

func parts(tx *gorm.DB, ids []string) *gorm.DB {
	return tx.Where("reservation_id IN ?", ids).Order("reservation_id, seq")
}

// loadLive returns all live reservations with their parts, in no order. It sends one statement for each
// table: MariaDB needs half as long again if each statement names some of the reservations, and if it
// sorts the parts.
func loadLive(tx *gorm.DB) (rows []*reservationRow, err error) {
	known := make(texts)
	live := tx.Table("reservations").Where("status IN ?", reservation.LiveStatuses)
	if err := scan(live, reservationColumns.names, reservationColumns.into(known), func(row reservationRow) { rows = append(rows, &row) }); err != nil {
		return nil, err
	}
	err = readParts(tx, rows, known, func(table string) *gorm.DB {
		ids := tx.Table("reservations").Where("status IN ?", reservation.LiveStatuses).Select("id")
		return tx.Table(table).Where("reservation_id IN (?)", ids)
	})
	for _, row := range rows {
		slices.SortFunc(row.Claims, func(a, b claimRow) int { return cmp.Compare(a.Seq, b.Seq) })
		slices.SortFunc(row.Events, func(a, b eventRow) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	return rows, err
}

// readParts reads the claims, events and addresses of rows; of selects the rows of a table that belong
// to them.
func readParts(tx *gorm.DB, rows []*reservationRow, known texts, of func(table string) *gorm.DB) error {
	at := make(map[string]*reservationRow, len(rows))
	for _, row := range rows {
		at[row.ID] = row
	}
	err := scan(of("claims"), claimColumns.names, claimColumns.into(known), func(c claimRow) {
		at[c.ReservationID].Claims = append(at[c.ReservationID].Claims, c)
	})
	if err != nil {
		return err
	}
	if err := loadAddresses(tx, rows, at); err != nil {
		return err
	}
	return scan(of("events"), eventColumns.names, eventColumns.into(known), func(e eventRow) {
		row := at[e.ReservationID]
		if row.Events == nil {
			row.Events = make([]eventRow, 0, usualEvents)
		}
		row.Events = append(row.Events, e)
	})
}

// usualEvents is how many events most reservations have at most.
const usualEvents = 4

// scan reads columns of the rows that found selects into the fields of a row each.
func scan[Row any](found *gorm.DB, columns string, fields func(*Row) []any, use func(Row)) error {
	rows, err := found.Select(columns).Rows()
	if err != nil {
		return err
	}
	defer rows.Close()
	var row Row
	for into := fields(&row); rows.Next(); use(row) {
		if err := rows.Scan(into...); err != nil {
			return err
		}
	}
	return rows.Err()
}

// texts contains each text once, however many rows have it.
type texts map[string]string

// one returns the text that equals text.
func (t texts) one(text string) string {
	if known, ok := t[text]; ok {
		return known
	}
	t[text] = text
	return text
}

// into returns a Scanner that stores a text in field.
func (t texts) into(field *string) sql.Scanner { return &shared{field, t} }

// shared is a field whose text many rows have in common.
type shared struct {
	field *string
	known texts
}

// Scan implements sql.Scanner.
func (s *shared) Scan(value any) error {
	switch value := value.(type) {
	case string:
		*s.field = s.known.one(value)
	case []byte: // converted for a comparison, it is not copied
		if *s.field == string(value) { // as in the row before
			return nil
		}
		known, ok := s.known[string(value)]
		if !ok {
			known = s.known.one(string(value))
		}
		*s.field = known
	default:
		return fmt.Errorf("a text is stored as %T", value)
	}
	return nil
}
