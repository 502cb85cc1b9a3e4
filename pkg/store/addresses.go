// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

var _ booking.Addresses = (*Store)(nil)

// enrolledRow is an address of the pool of floating IPs.
type enrolledRow struct {
	ID        string `gorm:"primaryKey;size:36"`
	NetworkID string `gorm:"size:64;not null;uniqueIndex:idx_floating_ips_address,priority:1"`
	SubnetID  string `gorm:"size:64;not null"`
	Address   string `gorm:"size:45;not null;uniqueIndex:idx_floating_ips_address,priority:2"`
	Created   int64  `gorm:"column:created_at;not null"`
}

// addressClaimRow is an address that a reservation holds for its span.
type addressClaimRow struct {
	ReservationID string `gorm:"primaryKey;size:36" json:"-"`
	Seq           int    `gorm:"primaryKey;autoIncrement:false" json:"-"` // place among the reservation's addresses, from 0
	NetworkID     string `gorm:"size:64;not null;index:idx_floating_ip_claims_address,priority:1"`
	Address       string `gorm:"size:45;not null;index:idx_floating_ip_claims_address,priority:2"`
	Required      bool   `gorm:"not null" json:",omitempty"`
}

func (enrolledRow) TableName() string     { return "floating_ips" }
func (addressClaimRow) TableName() string { return "floating_ip_claims" }

// addAddresses adds the pool of floating IPs and its claims.
func addAddresses(tx *gorm.DB) error { return createMissing(tx, &enrolledRow{}, &addressClaimRow{}) }

func addressClaimRows(r reservation.Reservation) (rows []addressClaimRow) {
	for i, a := range r.Addresses {
		rows = append(rows, addressClaimRow{r.ID, i, a.Network, a.Address, a.Required})
	}
	return rows
}

// loadAddresses reads the addresses of those reservations of list, which are the rows in at, that have
// any.
func loadAddresses(tx *gorm.DB, list []*reservationRow, at map[string]*reservationRow) error {
	var ids []string
	for _, row := range list {
		if row.Kind == string(reservation.Addresses) {
			ids = append(ids, row.ID)
		}
	}
	for chunk := range slices.Chunk(ids, batch) {
		var rows []addressClaimRow
		if err := parts(tx, chunk).Find(&rows).Error; err != nil {
			return err
		}
		for _, row := range rows {
			at[row.ReservationID].Addresses = append(at[row.ReservationID].Addresses, row)
		}
	}
	return nil
}

// replaceAddresses writes the addresses of a reservation that has any, if they have changed.
func replaceAddresses(tx *gorm.DB, row *reservationRow) error {
	if row.Kind != string(reservation.Addresses) {
		return nil
	}
	var stored []addressClaimRow
	if err := parts(tx, []string{row.ID}).Find(&stored).Error; err != nil || slices.Equal(stored, row.Addresses) {
		return err
	}
	if err := tx.Where("reservation_id = ?", row.ID).Delete(&addressClaimRow{}).Error; err != nil {
		return err
	}
	return insert(tx, row.Addresses)
}

// Pool implements booking.Addresses.
func (s *Store) Pool(ctx context.Context, network string) (pool address.Pool, err error) {
	err = s.read(ctx, func(tx *gorm.DB) error {
		pool = address.Pool{Network: network}
		versions, err := hostVersions(tx.Where("host = ?", address.VersionKey(network)))
		if err != nil {
			return err
		}
		for _, v := range versions {
			pool.Version = v.Version
		}
		if err := tx.Model(&enrolledRow{}).Where("network_id = ?", network).Pluck("address", &pool.Addresses).Error; err != nil {
			return err
		}
		slices.SortFunc(pool.Addresses, address.Compare)
		pool.Booked, err = bookedOn(tx, network)
		return err
	})
	return pool, fault.While(err, "read the floating IPs of network %s", network)
}

// bookedOn returns the claims of live reservations on the addresses of a network.
func bookedOn(tx *gorm.DB, network string) (list []address.Booked, err error) {
	var rows []struct {
		ID, Address    string
		StartAt, EndAt int64
	}
	err = tx.Table("floating_ip_claims").
		Joins("JOIN reservations ON reservations.id = floating_ip_claims.reservation_id").
		Where("floating_ip_claims.network_id = ? AND reservations.status IN ?", network, reservation.LiveStatuses).
		Select("reservations.id AS id, floating_ip_claims.address AS address, reservations.start_at AS start_at, reservations.end_at AS end_at").
		Order("reservations.start_at, reservations.id, floating_ip_claims.seq").Scan(&rows).Error
	for _, row := range rows {
		list = append(list, address.Booked{Reservation: row.ID, Address: row.Address, Span: spanOf(row.StartAt, row.EndAt)})
	}
	return list, err
}

// Enrolled returns the addresses of the pool of all networks, sorted by network, then address.
func (s *Store) Enrolled(ctx context.Context) (list []address.Enrolled, err error) {
	var rows []enrolledRow
	err = s.look(ctx, func(db *gorm.DB) error { return db.Order("network_id").Find(&rows).Error })
	if err != nil {
		return nil, fmt.Errorf("list the floating IPs: %w", err)
	}
	for _, row := range rows {
		list = append(list, row.enrolled())
	}
	slices.SortStableFunc(list, address.CompareEnrolled)
	return list, nil
}

func (row enrolledRow) enrolled() address.Enrolled {
	return address.Enrolled{ID: row.ID, Network: row.NetworkID, Subnet: row.SubnetID, Address: row.Address, Created: span.Instant(row.Created)}
}

// Enroll adds an address to the pool. It fails with a Conflict fault if the pool has it already, or is
// full.
func (s *Store) Enroll(ctx context.Context, a address.Enrolled) error {
	row := enrolledRow{ID: a.ID, NetworkID: a.Network, SubnetID: a.Subnet, Address: a.Address, Created: int64(a.Created)}
	err := s.write(ctx, func(tx *gorm.DB) error {
		var there []enrolledRow
		if err := tx.Where("network_id = ?", a.Network).Find(&there).Error; err != nil {
			return err
		}
		switch {
		case slices.Contains(there, row): // an earlier run of this transaction
			return nil
		case slices.ContainsFunc(there, func(other enrolledRow) bool { return other.Address == row.Address }):
			return address.AlreadyEnrolled(a.Address)
		case len(there) >= address.MostEnrolled:
			return address.Full(a.Network)
		}
		return tx.Create(&row).Error
	})
	if errors.Is(err, gorm.ErrDuplicatedKey) {
		err = address.AlreadyEnrolled(a.Address)
	}
	return fault.While(err, "add floating IP %s", a.Address)
}

// withdrawals is how often a removal is decided again because a booking came first.
const withdrawals = 20

// Withdraw removes an address from the pool. It fails with a NotFound fault if the pool has none of
// that id, and with a Conflict fault while a live reservation claims it. A booking that was decided
// with the address is not stored afterwards, since the version of the pool increases.
func (s *Store) Withdraw(ctx context.Context, id string) error {
	err := reservation.ErrStale
	for n := 0; n < withdrawals && errors.Is(err, reservation.ErrStale); n++ {
		err = s.withdrawOnce(ctx, id)
	}
	return fault.While(err, "remove floating IP %s", id)
}

// withdrawOnce tries once to take a floating IP out of its pool. It fails if the address is reserved, or
// if the pool has changed meanwhile.
func (s *Store) withdrawOnce(ctx context.Context, id string) error {
	var rows []enrolledRow
	if err := s.look(ctx, func(db *gorm.DB) error { return db.Where("id = ?", id).Find(&rows).Error }); err != nil {
		return err
	}
	if len(rows) == 0 {
		return address.NotEnrolled(id)
	}
	pool, err := s.Pool(ctx, rows[0].NetworkID)
	if err != nil {
		return err
	}
	if !slices.Contains(pool.Addresses, rows[0].Address) { // removed between the two readings
		return address.NotEnrolled(id)
	}
	if slices.ContainsFunc(pool.Booked, func(b address.Booked) bool { return b.Address == rows[0].Address }) {
		return address.StillClaimed(id)
	}
	return s.write(ctx, func(tx *gorm.DB) error {
		if err := raiseHosts(tx, []booking.HostVersion{{Host: address.VersionKey(pool.Network), Version: pool.Version}}); err != nil {
			return err
		}
		return tx.Where("id = ?", id).Delete(&enrolledRow{}).Error
	})
}
