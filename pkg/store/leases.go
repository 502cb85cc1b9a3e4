// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// leaseGroupRow is a lease: a group of reservations. The table leases contains something else, the
// leases that replicas have on their work.
type leaseGroupRow struct {
	ID        string `gorm:"primaryKey;size:36;index:idx_lease_groups_project,priority:3"`
	ProjectID string `gorm:"size:255;not null;index:idx_lease_groups_project,priority:1"`
	UserID    string `gorm:"size:255;not null"`
	Name      string `gorm:"size:255;not null"`
	StartAt   int64  `gorm:"not null;index:idx_lease_groups_project,priority:2"`
	EndAt     int64  `gorm:"not null"`
	BeforeEnd int64  `gorm:"column:before_end_at;not null"`
	Events    string `gorm:"size:1048576;not null"`
	Created   int64  `gorm:"column:created_at;not null"`
	Updated   int64  `gorm:"column:updated_at;not null"`
	Deleted   int64  `gorm:"column:removed_at;not null"` // 0 means not
	Version   int64  `gorm:"not null"`
	Token     string `gorm:"size:64;not null"` // of the transaction that stored it
}

func (leaseGroupRow) TableName() string { return "lease_groups" }

// membershipColumns are the columns of reservations that refer to a lease.
type membershipColumns struct {
	LeaseID    string  `gorm:"size:36;not null;default:'';index:idx_reservations_lease"`
	Membership *string `gorm:"size:1048576"`
}

func (membershipColumns) TableName() string { return "reservations" }

// addLeases adds leases to the first schema.
func addLeases(tx *gorm.DB) error {
	if err := createMissing(tx, &leaseGroupRow{}); err != nil {
		return err
	}
	if err := addColumns(tx, &membershipColumns{}, "LeaseID", "Membership"); err != nil {
		return err
	}
	schema := tx.Migrator()
	if schema.HasIndex(&membershipColumns{}, "idx_reservations_lease") {
		return nil
	}
	return schema.CreateIndex(&membershipColumns{}, "idx_reservations_lease")
}

func rowOfLease(l *reservation.Lease, token string) *leaseGroupRow {
	return &leaseGroupRow{
		ID: l.ID, ProjectID: l.ProjectID, UserID: l.UserID, Name: l.Name,
		StartAt: int64(l.Span.Start), EndAt: int64(l.Span.End), BeforeEnd: int64(l.BeforeEnd), Events: l.Events,
		Created: int64(l.Created), Updated: int64(l.Updated), Deleted: int64(l.Deleted), Version: l.Version, Token: token,
	}
}

func (row *leaseGroupRow) lease() reservation.Lease {
	return reservation.Lease{
		ID: row.ID, ProjectID: row.ProjectID, UserID: row.UserID, Name: row.Name,
		Span: spanOf(row.StartAt, row.EndAt), BeforeEnd: span.Instant(row.BeforeEnd), Events: row.Events,
		Created: span.Instant(row.Created), Updated: span.Instant(row.Updated), Deleted: span.Instant(row.Deleted), Version: row.Version,
	}
}

// encodeMembership returns nil for a reservation without a lease.
func encodeMembership(m reservation.Membership) (*string, error) {
	if m == (reservation.Membership{}) {
		return nil, nil
	}
	text, err := json.Marshal(m)
	return new(string(text)), err
}

func decodeMembership(row *reservationRow) (m reservation.Membership, err error) {
	if row.Membership != nil {
		err = json.Unmarshal([]byte(*row.Membership), &m)
	}
	m.LeaseID = row.LeaseID
	return m, err
}

// storeLease stores a lease. It fails with ErrStale if the stored version is not the previous one.
func storeLease(tx *gorm.DB, row leaseGroupRow) error {
	if row.Version == 1 {
		return unlessThere(tx.Create(&row).Error)
	}
	done := tx.Where("version = ?", row.Version-1).Select("*").Omit("id").Updates(&row)
	if done.Error == nil && done.RowsAffected == 0 {
		return reservation.ErrStale
	}
	return done.Error
}

// Lease implements reservation.LeaseReader.
func (s *Store) Lease(ctx context.Context, id string) (reservation.LeaseRecord, error) {
	list, err := s.LeasesOf(ctx, []string{id})
	if err != nil {
		return reservation.LeaseRecord{}, err
	}
	if len(list) == 0 {
		return reservation.LeaseRecord{}, booking.NoLease(id)
	}
	return list[0], nil
}

// LeaseStates implements reservation.LeaseReader.
func (s *Store) LeaseStates(ctx context.Context, q reservation.LeaseQuery) ([]reservation.LeaseState, error) {
	var list []leaseStateRow
	err := s.read(ctx, func(tx *gorm.DB) error {
		begin, err := leaseMarker(tx, q)
		if err != nil {
			return err
		}
		list = nil
		page := func(of *gorm.DB) error {
			found := selected(begin(of).Order("start_at, id"), q)
			return scan(found, "id, start_at, version", (*leaseStateRow).fields, func(row leaseStateRow) { list = append(list, row) })
		}
		if err := page(tx.Table("lease_groups").Where("removed_at = 0")); err != nil {
			return err
		}
		groups := len(list)
		if q.Stored {
			return countMembers(tx, q, list)
		}
		if err := page(unattached(tx.Table("reservations"))); err != nil {
			return err
		}
		for i := range list[groups:] {
			list[groups+i].count(list[groups+i].Version)
		}
		return countMembers(tx, q, list[:groups])
	})
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	slices.SortFunc(list, func(a, b leaseStateRow) int {
		return cmp.Or(cmp.Compare(a.StartAt, b.StartAt), cmp.Compare(a.ID, b.ID))
	})
	if q.Limit > 0 && len(list) > q.Limit {
		list = list[:q.Limit]
	}
	states := make([]reservation.LeaseState, len(list))
	for i, row := range list {
		states[i] = row.LeaseState
	}
	return states, nil
}

// selected restricts found to what q selects, except for the marker.
func selected(found *gorm.DB, q reservation.LeaseQuery) *gorm.DB {
	if q.ProjectID != "" {
		found = owned(found, q.ProjectID)
	}
	if q.ID != "" {
		found = found.Where("id = ?", q.ID)
	}
	if q.Name != "" {
		found = found.Where("name = ?", q.Name)
	}
	if q.Limit > 0 {
		found = found.Limit(q.Limit)
	}
	return found
}

// leaseStateRow is the state of a lease, with its start.
type leaseStateRow struct {
	StartAt int64
	reservation.LeaseState
}

func (row *leaseStateRow) fields() []any { return []any{&row.ID, &row.StartAt, &row.Version} }

// count counts a reservation of the lease.
func (row *leaseStateRow) count(version int64) {
	row.Reservations, row.Versions = row.Reservations+1, row.Versions+version
}

// countMembers counts the reservations of the leases in list, which q selects. MariaDB finds those of
// all leases several times faster in one pass than lease by lease.
func countMembers(tx *gorm.DB, q reservation.LeaseQuery, list []leaseStateRow) error {
	at := make(map[string]*leaseStateRow, len(list))
	var ids []string
	for i := range list {
		at[list[i].ID] = &list[i]
		ids = append(ids, list[i].ID)
	}
	count := func(of *gorm.DB) error {
		return scan(of.Table("reservations"), "lease_id, version", (*memberRow).fields, func(m memberRow) {
			if row, listed := at[m.lease]; listed {
				row.count(m.version)
			}
		})
	}
	if q == (reservation.LeaseQuery{ProjectID: q.ProjectID}) {
		return count(selected(tx.Where("lease_id <> ''"), q))
	}
	for chunk := range slices.Chunk(ids, batch) {
		if err := count(tx.Where("lease_id IN ?", chunk)); err != nil {
			return err
		}
	}
	return nil
}

// memberRow is the version of a reservation of a lease.
type memberRow struct {
	lease   string
	version int64
}

func (row *memberRow) fields() []any { return []any{&row.lease, &row.version} }

// LeasesOf implements reservation.LeaseReader.
func (s *Store) LeasesOf(ctx context.Context, ids []string) (list []reservation.LeaseRecord, err error) {
	for chunk := range slices.Chunk(ids, batch) {
		some, err := s.leases(ctx, chunk)
		if err != nil {
			return nil, fmt.Errorf("read leases: %w", err)
		}
		list = append(list, some...)
	}
	return list, nil
}

// unattached selects the reservations that appear as leases of their own: that belong to none, were
// not canceled, do not wait, are no maintenance, and are not hidden by a deleted lease of the same id.
func unattached(tx *gorm.DB) *gorm.DB {
	return tx.Where("lease_id = '' AND status NOT IN ? AND maintenance = ?", reservation.NoLease, false).
		Where("NOT EXISTS (SELECT 1 FROM `lease_groups` WHERE `lease_groups`.`id` = `reservations`.`id`)")
}

// leaseMarker returns the condition for what follows the marker of q.
func leaseMarker(tx *gorm.DB, q reservation.LeaseQuery) (after func(*gorm.DB) *gorm.DB, err error) {
	if q.Marker == "" {
		return func(found *gorm.DB) *gorm.DB { return found }, nil
	}
	for _, table := range []any{&leaseGroupRow{}, &reservationRow{}} {
		start, known, err := markedStart(tx, table, q.Marker, q.ProjectID)
		if err != nil {
			return nil, err
		}
		if known {
			return func(found *gorm.DB) *gorm.DB { return following(found, start, q.Marker) }, nil
		}
	}
	return nil, fault.Field("marker", "there is no lease %s", q.Marker)
}

// leases returns leases with their reservations, without those that were deleted.
func (s *Store) leases(ctx context.Context, ids []string) ([]reservation.LeaseRecord, error) {
	var groups []leaseGroupRow
	var rows []*reservationRow
	err := s.read(ctx, func(tx *gorm.DB) error {
		if err := tx.Where("id IN ?", ids).Find(&groups).Error; err != nil {
			return err
		}
		var own []*reservationRow
		if err := unattached(tx).Where("id IN ?", ids).Find(&own).Error; err != nil {
			return err
		}
		if err := tx.Where("lease_id IN ?", ids).Order("id").Find(&rows).Error; err != nil {
			return err
		}
		rows = append(rows, own...)
		return loadParts(tx, rows)
	})
	if err != nil {
		return nil, err
	}
	found, err := reservations(rows)
	if err != nil {
		return nil, err
	}
	return records(groups, found), nil
}

// records returns leases with their reservations, and each reservation without a lease as one.
func records(groups []leaseGroupRow, found []reservation.Reservation) (list []reservation.LeaseRecord) {
	members := make(map[string][]reservation.Reservation)
	for _, r := range found {
		if id := r.Membership.LeaseID; id != "" {
			members[id] = append(members[id], r)
		} else {
			list = append(list, reservation.OwnLease(r))
		}
	}
	for i := range groups {
		if l := groups[i].lease(); l.Deleted == 0 {
			list = append(list, reservation.LeaseRecord{Lease: l, Reservations: members[l.ID]})
		}
	}
	return list
}
