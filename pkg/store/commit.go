// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

const (
	// batch is the largest number of rows that one statement inserts or selects. SQLite accepts 32,766
	// values in a statement, and a reservation has 36 columns.
	batch = 900
	// alternatives is the largest number of conditions that one statement joins with OR: the
	// largest depth of an expression in SQLite is 1,000.
	alternatives = 200
)

// Commit implements booking.Records. For a new reservation of few hosts it makes eight statements,
// including BEGIN and COMMIT, and one more for a key.
//
// Rows are locked in one order: key, hosts by name, lease, reservations that exist by id, new rows,
// usage by project. The usage row of a project, which all its bookings share, comes last, so that it is
// locked only for one round trip, that of the COMMIT, unless reservations of several projects move.
func (s *Store) Commit(ctx context.Context, c booking.Commit) error {
	w, err := s.writingOf(c)
	if err != nil {
		return fmt.Errorf("store %s: %w", subject(c), err)
	}
	doubtful := false
	err = s.persist(ctx, func(ctx context.Context) error {
		if doubtful {
			if done, err := s.landed(ctx, w); done || err != nil {
				return err
			}
		}
		err := s.writeOnce(ctx, func(tx *gorm.DB) error { return w.commit(tx, s.engine.insertMissing) })
		if _, doubt := errors.AsType[*inDoubt](err); doubt {
			doubtful = true
		}
		if doubtful && (errors.Is(err, reservation.ErrStale) || errors.Is(err, reservation.ErrKeyUsed)) {
			// The conflict may be with the previous attempt of this commit.
			if done, lookErr := s.landed(ctx, w); done || lookErr != nil {
				return lookErr
			}
		}
		return err
	})
	return fault.While(err, "store %s", subject(c))
}

// subject returns what a commit is about, for errors.
func subject(c booking.Commit) string {
	if c.Lease != nil {
		return "lease " + c.Lease.ID
	}
	return "reservation " + c.Revisions[0].Reservation.ID
}

// writing is a commit as the rows that it stores.
type writing struct {
	of           booking.Commit
	lease        *leaseGroupRow // nil means that no lease changes
	series       *seriesRow     // nil means that there is no new series
	reservations []reservationRow
	entries      []changeRow // of the change log, one for each reservation
	released     []pastClaimRow
}

// writingOf returns the rows of a commit, encoded before the transaction begins.
func (s *Store) writingOf(c booking.Commit) (w writing, err error) {
	w.of = c
	if c.Lease != nil {
		w.lease = rowOfLease(c.Lease, s.newToken())
	}
	if w.series, err = rowOfSeries(c.Series); err != nil {
		return w, err
	}
	c.Revisions = slices.SortedFunc(slices.Values(c.Revisions), func(a, b booking.Revision) int {
		return cmp.Compare(a.Reservation.ID, b.Reservation.ID)
	})
	w.reservations, w.entries = make([]reservationRow, len(c.Revisions)), make([]changeRow, len(c.Revisions))
	for i, revision := range c.Revisions {
		if w.reservations[i], err = rowOf(revision.Reservation); err != nil {
			return w, err
		}
		if w.entries[i], err = s.entry(revision.Cause, &w.reservations[i]); err != nil {
			return w, err
		}
		w.released = append(w.released, pastClaimRows(revision)...)
	}
	return w, nil
}

// landed reports whether an earlier attempt has stored the commit: whether the change log contains
// its entry, or the lease its token.
func (s *Store) landed(ctx context.Context, w writing) (bool, error) {
	db := s.reader.WithContext(ctx)
	var count int64
	if len(w.entries) == 0 {
		err := db.Model(&leaseGroupRow{}).Where("id = ? AND version = ? AND token = ?", w.lease.ID, w.lease.Version, w.lease.Token).Count(&count).Error
		return count > 0, err
	}
	entry := w.entries[0]
	err := db.Model(&changeRow{}).
		Where("reservation_id = ? AND version = ? AND token = ?", entry.ReservationID, entry.Version, entry.Token).Count(&count).Error
	return count > 0, err
}

// commit writes the rows of a commit. It fails if a host, a reservation or a key has changed since it
// was decided.
func (w writing) commit(tx *gorm.DB, insertMissing string) error {
	if w.of.Key != nil {
		if err := useKey(tx, *w.of.Key); err != nil {
			return err
		}
	}
	if err := raiseHosts(tx, w.of.Hosts); err != nil {
		return err
	}
	if w.lease != nil {
		if err := storeLease(tx, *w.lease); err != nil {
			return err
		}
	}
	if w.series != nil {
		if err := unlessThere(tx.Create(w.series).Error); err != nil {
			return err
		}
	}
	var fresh, old []reservationRow
	for _, row := range w.reservations {
		if row.Version == 1 {
			fresh = append(fresh, row)
		} else {
			old = append(old, row)
		}
	}
	if err := update(tx, old); err != nil {
		return err
	}
	if err := create(tx, fresh); err != nil {
		return err
	}
	if err := insert(tx, w.released); err != nil {
		return err
	}
	if err := log(tx, w.entries); err != nil {
		return err
	}
	for _, u := range w.of.Usages() {
		if err := addUsage(tx, u.Project, u.Usage, insertMissing); err != nil {
			return err
		}
	}
	return nil
}

// useKey stores the use of a key. It is the first statement, so that a repeated request writes
// nothing else.
func useKey(tx *gorm.DB, key reservation.Key) error {
	err := tx.Create(rowOfKey(key)).Error
	if errors.Is(err, gorm.ErrDuplicatedKey) {
		return reservation.ErrKeyUsed
	}
	return err
}

// raiseHosts raises the versions of hosts. Each host must have the version on which the decision
// was based.
func raiseHosts(tx *gorm.DB, hosts []booking.HostVersion) error {
	hosts = slices.SortedFunc(slices.Values(hosts), func(a, b booking.HostVersion) int { return cmp.Compare(a.Host, b.Host) })
	var fresh []hostRow
	hosts = slices.DeleteFunc(hosts, func(h booking.HostVersion) bool {
		if h.Version == 0 {
			fresh = append(fresh, hostRow{h.Host, 1})
		}
		return h.Version == 0
	})
	for chunk := range slices.Chunk(hosts, alternatives) {
		known := make([]any, 0, 2*len(chunk))
		for _, h := range chunk {
			known = append(known, h.Host, h.Version)
		}
		where := strings.Repeat(" OR (`host` = ? AND `version` = ?)", len(chunk))[len(" OR "):]
		done := tx.Exec("UPDATE `host_versions` SET `version` = `version` + 1 WHERE "+where, known...)
		if done.Error != nil {
			return done.Error
		}
		if done.RowsAffected != int64(len(chunk)) {
			return reservation.ErrStale
		}
	}
	return unlessThere(insert(tx, fresh))
}

// unlessThere returns ErrStale if the error is that a new row exists already; otherwise err.
func unlessThere(err error) error {
	if errors.Is(err, gorm.ErrDuplicatedKey) {
		return reservation.ErrStale
	}
	return err
}

// mostLogged is the largest size of the states that one statement adds to the change log, in bytes,
// unless a single one is larger. It is a fraction of MariaDB's default max_allowed_packet.
const mostLogged = 1 << 20

// log adds entries to the change log.
func log(tx *gorm.DB, entries []changeRow) error {
	for len(entries) > 0 {
		size, n := len(entries[0].State), 1
		for n < len(entries) && size+len(entries[n].State) <= mostLogged {
			size, n = size+len(entries[n].State), n+1
		}
		if err := insert(tx, slices.Clone(entries[:n])); err != nil { // gorm sets their numbers
			return err
		}
		entries = entries[n:]
	}
	return nil
}

// create inserts new reservations, with one statement for each table.
func create(tx *gorm.DB, rows []reservationRow) error {
	var claims []claimRow
	var addresses []addressClaimRow
	var events []eventRow
	for _, row := range rows {
		claims, addresses, events = append(claims, row.Claims...), append(addresses, row.Addresses...), append(events, row.Events...)
	}
	if err := unlessThere(insert(tx.Omit(clause.Associations), rows)); err != nil {
		return err
	}
	if err := insert(tx, claims); err != nil {
		return err
	}
	if err := insert(tx, addresses); err != nil {
		return err
	}
	return insert(tx, events)
}

func insert[T any](tx *gorm.DB, rows []T) error {
	if len(rows) == 0 {
		return nil
	}
	return tx.CreateInBatches(rows, batch).Error
}

// addUsage adds to what a project holds and raises its version. It fails with ErrStale if the
// version is not the one on which the decision was based, or if the sum of host-seconds would
// exceed its limit.
func addUsage(tx *gorm.DB, project string, u booking.Usage, insertMissing string) error {
	if u.Hosts == 0 && u.HostSeconds == 0 && !u.Raises {
		return nil
	}
	set := "UPDATE `project_usage` SET `hosts` = `hosts` + ?, `host_seconds` = `host_seconds` + ?"
	if u.Raises {
		set += ", `version` = `version` + 1"
	}
	set += " WHERE `project_id` = ?"
	values := []any{u.Hosts, u.HostSeconds, project}
	if u.Known != nil {
		set, values = set+" AND `version` = ?", append(values, *u.Known)
	}
	if u.HostSeconds > 0 && u.MostHostSeconds > 0 {
		set, values = set+" AND `host_seconds` + ? <= ?", append(values, u.HostSeconds, u.MostHostSeconds)
	}
	done := tx.Exec(set, values...)
	if done.Error == nil && done.RowsAffected == 0 {
		// The first reservation of a project finds no row.
		if err := tx.Exec(insertMissing+" `project_usage` (`project_id`, `hosts`, `host_seconds`) VALUES (?, 0, 0)", project).Error; err != nil {
			return err
		}
		done = tx.Exec(set, values...)
	}
	if done.Error == nil && done.RowsAffected == 0 {
		return reservation.ErrStale
	}
	return done.Error
}
