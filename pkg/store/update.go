// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/reservation"
)

// update replaces reservations. Of their claims, which may be many, it writes those from the first difference on; of their
// events, those that are new or changed.
func update(tx *gorm.DB, rows []reservationRow) error {
	for i := range rows {
		done := tx.Where("version = ?", rows[i].Version-1).Select("*").Omit("id", clause.Associations).Updates(&rows[i])
		if done.Error != nil {
			return done.Error
		}
		if done.RowsAffected == 0 {
			return reservation.ErrStale
		}
	}
	for chunk := range slices.Chunk(rows, batch) {
		if err := replaceClaims(tx, chunk); err != nil {
			return err
		}
		for i := range chunk {
			if err := replaceAddresses(tx, &chunk[i]); err != nil {
				return err
			}
		}
		if err := replaceEvents(tx, chunk); err != nil {
			return err
		}
	}
	return nil
}

func replaceClaims(tx *gorm.DB, rows []reservationRow) error {
	stored, err := storedParts(tx, rows, func(c claimRow) string { return c.ReservationID })
	if err != nil {
		return err
	}
	var write []claimRow
	gone := map[int][]string{} // the reservations whose claims from a place on go
	for _, row := range rows {
		had, same := stored[row.ID], 0
		for same < min(len(had), len(row.Claims)) && had[same] == row.Claims[same] {
			same++
		}
		if same < len(had) {
			gone[same] = append(gone[same], row.ID)
		}
		write = append(write, row.Claims[same:]...)
	}
	for _, place := range slices.Sorted(maps.Keys(gone)) {
		if err := tx.Where("reservation_id IN ? AND seq >= ?", gone[place], place).Delete(&claimRow{}).Error; err != nil {
			return err
		}
	}
	return insert(tx, write)
}

func replaceEvents(tx *gorm.DB, rows []reservationRow) error {
	stored, err := storedParts(tx, rows, func(e eventRow) string { return e.ReservationID })
	if err != nil {
		return err
	}
	var write []eventRow
	from, at := map[string][]string{}, map[string][]int{} // the reservations whose events at some places go, and these places, by their text
	for _, row := range rows {
		fresh, gone := eventChanges(stored[row.ID], row.Events)
		write = append(write, fresh...)
		for chunk := range slices.Chunk(gone, batch) {
			text := fmt.Sprint(chunk)
			from[text], at[text] = append(from[text], row.ID), chunk
		}
	}
	for _, text := range slices.Sorted(maps.Keys(at)) {
		if err := tx.Where("reservation_id IN ? AND seq IN ?", from[text], at[text]).Delete(&eventRow{}).Error; err != nil {
			return err
		}
	}
	return insert(tx.Clauses(clause.OnConflict{UpdateAll: true}), write)
}

// storedParts returns the rows of a table that refer to reservations, by the id of the reservation, in their order.
func storedParts[T any](tx *gorm.DB, rows []reservationRow, of func(T) string) (map[string][]T, error) {
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	var list []T
	err := parts(tx, ids).Find(&list).Error
	stored := make(map[string][]T, len(rows))
	for _, one := range list {
		stored[of(one)] = append(stored[of(one)], one)
	}
	return stored, err
}

// eventChanges returns the rows to write and the places to clear so that the stored events become
// the wanted ones. Events that stay keep their place: a log that loses its oldest entry when it
// gains a new one is not rewritten.
func eventChanges(stored, wanted []eventRow) (write []eventRow, gone []int) {
	next := 0
	if len(stored) > 0 {
		next = stored[len(stored)-1].Seq + 1
	}
	for len(wanted) > 0 {
		at := slices.IndexFunc(stored, func(e eventRow) bool { return e.tells(wanted[0]) })
		if at < 0 {
			break
		}
		gone = append(gone, places(stored[:at])...)
		stored, wanted = stored[at+1:], wanted[1:]
	}
	for _, e := range wanted {
		if len(stored) == 0 {
			e.Seq = next
			next++
		} else {
			same := stored[0].tells(e)
			e.Seq, stored = stored[0].Seq, stored[1:]
			if same {
				continue
			}
		}
		write = append(write, e)
	}
	return write, append(gone, places(stored)...)
}

// tells reports whether two rows contain the same event, whatever their places.
func (row eventRow) tells(same eventRow) bool {
	row.Seq = same.Seq
	return row == same
}

func places(rows []eventRow) []int {
	list := make([]int, len(rows))
	for i, row := range rows {
		list[i] = row.Seq
	}
	return list
}
