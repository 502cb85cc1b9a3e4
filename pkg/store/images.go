// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging/controller"
)

var _ controller.Records = (*Store)(nil)

// StagedImages implements controller.Records.
func (s *Store) StagedImages(ctx context.Context, now span.Instant) (controller.Stored, error) {
	var stored controller.Stored
	err := s.read(ctx, func(tx *gorm.DB) error {
		stored = controller.Stored{}
		var images []imageRow
		var cached []cachedImageRow
		if err := tx.Order("id").Find(&images).Error; err != nil {
			return err
		}
		transfers, err := transfersThatMatter(tx, now)
		if err != nil {
			return err
		}
		if err := tx.Order("image_id, host").Find(&cached).Error; err != nil {
			return err
		}
		for _, row := range transfers {
			t, err := row.transfer()
			if err != nil {
				return err
			}
			stored.Transfers = append(stored.Transfers, t)
		}
		stored.Images = converted(images, func(i imageRow) controller.Image {
			return controller.Image{ID: i.ID, Name: i.Name, Bytes: i.Bytes, Looked: span.Instant(i.Looked), Gone: i.Gone}
		})
		stored.Cached = converted(cached, func(c cachedImageRow) controller.Cached {
			return controller.Cached{Image: c.Image, Host: c.Host, Bytes: c.Bytes, Since: span.Instant(c.Since), LastUsed: span.Instant(c.LastUsed)}
		})
		return nil
	})
	return stored, fault.While(err, "read the images on hosts")
}

// transfersThatMatter reads the transfers in several queries, each with its own index, because
// those of a month may be very many.
func transfersThatMatter(tx *gorm.DB, now span.Instant) ([]imageTransferRow, error) {
	var under, more []imageTransferRow
	if err := tx.Where("outcome = ''").Find(&under).Error; err != nil {
		return nil, err
	}
	all := map[string]imageTransferRow{}
	calls := map[string]bool{}
	for _, row := range under {
		all[row.ID] = row
		calls[row.Call] = true
	}
	for _, part := range []*gorm.DB{
		tx.Where("request_id IN ?", slices.Sorted(maps.Keys(calls))),
		tx.Where("outcome IN ? AND expire_at > ?", []controller.Outcome{controller.TransferFailed, controller.TransferLost}, int64(now)),
		tx.Where("outcome = ? AND bytes >= ?", controller.TransferThere, controller.Telling).Order("finished_at DESC").Limit(controller.Measured),
	} {
		if err := part.Find(&more).Error; err != nil {
			return nil, err
		}
		for _, row := range more {
			all[row.ID] = row
		}
		more = nil
	}
	return slices.SortedFunc(maps.Values(all), func(a, b imageTransferRow) int {
		return cmp.Or(cmp.Compare(a.Started, b.Started), cmp.Compare(a.ID, b.ID))
	}), nil
}

func (row *imageTransferRow) transfer() (controller.Transfer, error) {
	t := controller.Transfer{
		ID: row.ID, Call: row.Call, Image: row.Image, Host: row.Host, Bytes: row.Bytes,
		Deadline: span.Instant(row.Deadline), Started: span.Instant(row.Started), Expected: span.Instant(row.Expected),
		Bound: span.Instant(row.Bound), Expire: span.Instant(row.Expire), Begun: span.Instant(row.Begun), Finished: span.Instant(row.Finished),
		Outcome: controller.Outcome(row.Outcome), Detail: row.Detail,
	}
	if err := json.Unmarshal([]byte(row.Reservations), &t.Reservations); err != nil {
		return t, fmt.Errorf("decode the reservations of image transfer %s: %w", row.ID, err)
	}
	return t, nil
}

func rowOfTransfer(t controller.Transfer) (imageTransferRow, error) {
	reservations, err := json.Marshal(t.Reservations)
	return imageTransferRow{
		ID: t.ID, Call: t.Call, Image: t.Image, Host: t.Host, Bytes: t.Bytes, Reservations: string(reservations),
		Deadline: int64(t.Deadline), Started: int64(t.Started), Expected: int64(t.Expected), Bound: int64(t.Bound), Expire: int64(t.Expire),
		Begun: int64(t.Begun), Finished: int64(t.Finished), Outcome: string(t.Outcome), Detail: t.Detail,
	}, err
}

// ChangeStagedImages implements controller.Records.
func (s *Store) ChangeStagedImages(ctx context.Context, lease job.Lease, c controller.Change) error {
	transfers := make([]imageTransferRow, len(c.Transfers))
	for i, t := range c.Transfers {
		var err error
		if transfers[i], err = rowOfTransfer(t); err != nil {
			return fmt.Errorf("encode image transfer %s: %w", t.ID, err)
		}
	}
	err := s.writeUnder(ctx, lease, func(tx *gorm.DB) error {
		if err := forgetImages(tx, c); err != nil {
			return err
		}
		replace := tx.Clauses(clause.OnConflict{UpdateAll: true}).Session(&gorm.Session{})
		if err := insert(replace, converted(c.Images, func(i controller.Image) imageRow {
			return imageRow{ID: i.ID, Name: i.Name, Bytes: i.Bytes, Looked: int64(i.Looked), Gone: i.Gone}
		})); err != nil {
			return err
		}
		if err := insert(replace, transfers); err != nil {
			return err
		}
		return insert(replace, converted(c.Cached, func(one controller.Cached) cachedImageRow {
			return cachedImageRow{one.Image, one.Host, one.Bytes, int64(one.Since), int64(one.LastUsed)}
		}))
	})
	return fault.While(err, "store the images on hosts")
}

// forgetImages deletes what a change of images forgets.
func forgetImages(tx *gorm.DB, c controller.Change) error {
	for _, one := range c.Forgotten {
		if err := tx.Where("image_id = ? AND host = ?", one.Image, one.Host).Delete(&cachedImageRow{}).Error; err != nil {
			return err
		}
	}
	if len(c.ForgetImages) > 0 {
		if err := tx.Where("id IN ?", c.ForgetImages).Delete(&imageRow{}).Error; err != nil {
			return err
		}
	}
	if c.ForgetBefore != 0 {
		return tx.Where("outcome IN ? AND finished_at < ?", controller.Outcomes, int64(c.ForgetBefore)).Delete(&imageTransferRow{}).Error
	}
	return nil
}
