// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// TakeOver stores what is taken over from another service, completely or not at all. It fails with
// reservation.ErrStale if the hosts have other versions than those on which it was decided, or if
// one of the leases is stored already. Its changes are stored as told: the other service has told
// of them.
func (s *Store) TakeOver(ctx context.Context, t booking.TakeOver, at span.Instant) error {
	rows, err := s.takingOf(t)
	if err == nil {
		err = s.write(ctx, func(tx *gorm.DB) error {
			if done, err := rows.landed(tx); done || err != nil {
				return err
			}
			if err := rows.store(tx, s.engine.insertMissing); err != nil {
				return err
			}
			return s.enroll(tx, t, at)
		})
	}
	return fault.While(err, "store what is taken over")
}

// taking is a booking.TakeOver as rows.
type taking struct {
	of           booking.TakeOver
	token        string
	leases       []leaseGroupRow
	reservations []reservationRow
	claims       []claimRow
	events       []eventRow
	entries      []changeRow
}

func (s *Store) takingOf(t booking.TakeOver) (rows taking, err error) {
	rows.of, rows.token = t, s.newToken()
	for i := range t.Leases {
		rows.leases = append(rows.leases, *rowOfLease(&t.Leases[i].Lease, rows.token))
		for _, r := range t.Leases[i].Reservations {
			row, err := rowOf(r)
			if err != nil {
				return rows, err
			}
			entry, err := s.entry(t.Cause, &row)
			if err != nil {
				return rows, err
			}
			entry.Sent, entry.Hooked = true, true
			rows.claims, rows.events = append(rows.claims, row.Claims...), append(rows.events, row.Events...)
			row.Claims, row.Events = nil, nil
			rows.reservations, rows.entries = append(rows.reservations, row), append(rows.entries, entry)
		}
	}
	return rows, nil
}

// landed reports whether an earlier attempt, whose outcome was unknown, has stored the rows.
func (rows *taking) landed(tx *gorm.DB) (bool, error) {
	if rows.token == "" || len(rows.leases) == 0 {
		return false, nil
	}
	var count int64
	err := tx.Model(&leaseGroupRow{}).Where("id = ? AND token = ?", rows.leases[0].ID, rows.token).Count(&count).Error
	return count > 0, err
}

// entriesAtOnce is the number of rows of the change log in one statement: each has the state of a
// reservation.
const entriesAtOnce = 50

func (rows *taking) store(tx *gorm.DB, insertMissing string) error {
	if err := raiseHosts(tx, rows.of.Hosts); err != nil {
		return err
	}
	if err := unlessThere(insert(tx, rows.leases)); err != nil {
		return err
	}
	if err := unlessThere(insert(tx.Omit(clause.Associations), rows.reservations)); err != nil {
		return err
	}
	if err := insert(tx, rows.claims); err != nil {
		return err
	}
	if err := insert(tx, rows.events); err != nil {
		return err
	}
	if entries := slices.Clone(rows.entries); len(entries) > 0 { // gorm sets their numbers
		if err := tx.CreateInBatches(entries, entriesAtOnce).Error; err != nil {
			return err
		}
	}
	for _, project := range slices.Sorted(maps.Keys(rows.of.Usage)) {
		if err := addUsage(tx, project, rows.of.Usage[project], insertMissing); err != nil {
			return err
		}
	}
	return nil
}

// enroll stores the instances that are in the cloud already, as guests of their reservations, and the hosts and
// properties of the other service: overrides, hidden properties, numbers.
func (s *Store) enroll(tx *gorm.DB, t booking.TakeOver, at span.Instant) error {
	var guests []instanceRecordRow
	for _, id := range slices.Sorted(maps.Keys(t.Guests)) {
		guests = append(guests, instanceRecordRow{Instance: id, Reservation: t.Guests[id], At: int64(at)})
	}
	if err := insert(tx.Clauses(clause.OnConflict{UpdateAll: true}), guests); err != nil {
		return err
	}
	if err := s.inTurn(tx, "settings"); err != nil {
		return err
	}
	stored, err := overrides(tx)
	if err != nil {
		return err
	}
	changed := t.Pool.Overrides(stored, at)
	for _, host := range slices.Sorted(maps.Keys(changed)) {
		if err := saveOverride(tx, host, changed[host]); err != nil {
			return err
		}
	}
	for _, property := range t.Pool.Hidden {
		if err := tx.Clauses(clause.OnConflict{DoNothing: true}).Create(&hiddenRow{property}).Error; err != nil {
			return err
		}
	}
	return s.renumber(tx, t)
}

// renumber sets the numbers of the hosts of the pool.
func (s *Store) renumber(tx *gorm.DB, t booking.TakeOver) error {
	if len(t.Pool.Hosts) == 0 {
		return nil
	}
	if err := s.inTurn(tx, "host numbers"); err != nil {
		return err
	}
	stored, _, err := hostNumbers(tx)
	if err != nil {
		return err
	}
	numbers := t.Pool.Numbers(stored)
	if maps.Equal(stored, numbers) {
		return nil
	}
	if err := tx.Where("number > 0").Delete(&hostNumberRow{}).Error; err != nil {
		return err
	}
	var rows []hostNumberRow
	for _, host := range slices.Sorted(maps.Keys(numbers)) {
		rows = append(rows, hostNumberRow{host, numbers[host]})
	}
	return insert(tx, rows)
}

// StoredOf returns those of the ids that a lease or a reservation has, also a deleted lease.
func (s *Store) StoredOf(ctx context.Context, ids []string) (map[string]bool, error) {
	stored := make(map[string]bool)
	for chunk := range slices.Chunk(ids, batch) {
		for _, table := range []any{&leaseGroupRow{}, &reservationRow{}} {
			var found []string
			err := s.look(ctx, func(db *gorm.DB) error { return db.Model(table).Where("id IN ?", chunk).Pluck("id", &found).Error })
			if err != nil {
				return nil, fmt.Errorf("read which leases are stored: %w", err)
			}
			for _, id := range found {
				stored[id] = true
			}
		}
	}
	return stored, nil
}
