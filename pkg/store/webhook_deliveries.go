// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/webhook"
)

// Each transaction that adds or removes deliveries changes the row of the webhook first, and holds it: a webhook without
// a next try has no deliveries.

// Unhooked implements delivery.Filler.
func (s *Store) Unhooked(ctx context.Context, limit int) ([]reservation.Change, error) {
	return s.changes(ctx, limit, func(db *gorm.DB) *gorm.DB { return db.Where("hooked = ?", false).Order("seq") })
}

// WebhooksOf implements delivery.Filler.
func (s *Store) WebhooksOf(ctx context.Context, projects []string) (list []webhook.Webhook, err error) {
	var rows []webhookRow
	err = s.read(ctx, func(tx *gorm.DB) error {
		rows = nil
		if err := tx.Where("all_projects = ?", true).Find(&rows).Error; err != nil {
			return err
		}
		for chunk := range slices.Chunk(projects, batch) {
			var own []webhookRow
			if err := ownedByAny(tx.Where("all_projects = ?", false), chunk).Find(&own).Error; err != nil {
				return err
			}
			rows = append(rows, own...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read the webhooks of projects: %w", err)
	}
	for i := range rows {
		w, err := rows[i].webhook()
		if err != nil {
			return nil, err
		}
		list = append(list, w)
	}
	return list, nil
}

// Hook implements delivery.Filler. A webhook that was deleted or disabled in between gets nothing.
func (s *Store) Hook(
	ctx context.Context, lease job.Lease, places []int64, deliveries []webhook.Delivery, now span.Instant, most int,
) (dropped int, err error) {
	of := map[string][]deliveryRow{}
	var ids []string
	for _, d := range deliveries {
		if of[d.WebhookID] == nil {
			ids = append(ids, d.WebhookID)
		}
		of[d.WebhookID] = append(of[d.WebhookID], deliveryRow{d.WebhookID, d.Place, int64(d.Changed)})
	}
	slices.Sort(ids) // so that transactions lock the rows in one order
	err = s.writeUnder(ctx, lease, func(tx *gorm.DB) error {
		dropped = 0
		var left []int64
		if err := tx.Model(&changeRow{}).Where("seq IN ? AND hooked = ?", places, false).Limit(1).Pluck("seq", &left).Error; err != nil || len(left) == 0 {
			return err // an earlier attempt, whose outcome was unknown, has done it
		}
		for chunk := range slices.Chunk(ids, batch) {
			var rows []deliveryRow
			living, err := wake(tx, chunk, now)
			if err != nil {
				return err
			}
			for _, id := range living {
				rows = append(rows, of[id]...)
			}
			if err := insert(tx.Clauses(clause.OnConflict{DoNothing: true}), rows); err != nil {
				return err
			}
			gone, err := dropOldest(tx, living, most)
			if dropped += gone; err != nil {
				return err
			}
		}
		for chunk := range slices.Chunk(places, batch) {
			if err := tx.Model(&changeRow{}).Where("seq IN ?", chunk).Update("hooked", true).Error; err != nil {
				return err
			}
		}
		return nil
	})
	return dropped, fault.While(err, "store deliveries to webhooks")
}

// wake lets webhooks that have nothing to try begin at now, holds their rows, and returns those that exist and are not disabled.
func wake(tx *gorm.DB, ids []string, now span.Instant) (living []string, err error) {
	done := tx.Exec("UPDATE `webhooks` SET `writes` = `writes` + 1, `next_at` = CASE WHEN `next_at` = 0 THEN ? ELSE `next_at` END"+
		" WHERE `id` IN ? AND `disabled` = ''", now, ids)
	if done.Error != nil {
		return nil, done.Error
	}
	return living, tx.Model(&webhookRow{}).Where("id IN ? AND disabled = ''", ids).Order("id").Pluck("id", &living).Error
}

// dropOldest keeps the last most deliveries of each webhook, and returns how many it has dropped.
func dropOldest(tx *gorm.DB, ids []string, most int) (dropped int, err error) {
	waiting, err := waitingFor(tx, ids)
	if err != nil {
		return 0, err
	}
	for _, w := range waiting {
		if w.Waiting <= most {
			continue
		}
		var last []int64
		oldest := tx.Model(&deliveryRow{}).Where("webhook_id = ?", w.WebhookID).Order("seq").Offset(w.Waiting - most).Limit(1)
		if err := oldest.Pluck("seq", &last).Error; err != nil {
			return dropped, err
		}
		done := tx.Where("webhook_id = ? AND seq < ?", w.WebhookID, last[0]).Delete(&deliveryRow{})
		if done.Error != nil {
			return dropped, done.Error
		}
		dropped += int(done.RowsAffected)
		if err := tx.Exec("UPDATE `webhooks` SET `dropped` = `dropped` + ? WHERE `id` = ?", done.RowsAffected, w.WebhookID).Error; err != nil {
			return dropped, err
		}
	}
	return dropped, nil
}

// DueWebhooks implements delivery.Sender.
func (s *Store) DueWebhooks(ctx context.Context, now span.Instant, limit int) (list []webhook.Due, err error) {
	for _, failing := range []bool{false, true} {
		var rows []webhookRow
		err := s.look(ctx, func(db *gorm.DB) error {
			rows = nil
			return db.Select("id", "project_id", "failing", "next_at").
				Where("failing = ? AND next_at > 0 AND next_at <= ?", failing, now).Order("next_at").Limit(limit).Find(&rows).Error
		})
		if err != nil {
			return nil, fmt.Errorf("find the webhooks that are due: %w", err)
		}
		for _, row := range rows {
			list = append(list, webhook.Due{ID: row.ID, ProjectID: row.ProjectID, Failing: row.Failing, At: span.Instant(row.NextAt)})
		}
	}
	return list, nil
}

// NextDelivery implements delivery.Sender. A change that is no longer stored has only its place.
func (s *Store) NextDelivery(ctx context.Context, id string) (w webhook.Webhook, change reservation.Change, err error) {
	var hooks []webhookRow
	var first []deliveryRow
	var of []changeRow
	err = s.read(ctx, func(tx *gorm.DB) error {
		hooks, first, of = nil, nil, nil
		if err := tx.Where("id = ?", id).Find(&hooks).Error; err != nil || len(hooks) == 0 {
			return err
		}
		if err := tx.Where("webhook_id = ?", id).Order("seq").Limit(1).Find(&first).Error; err != nil || len(first) == 0 {
			return err
		}
		return tx.Where("seq = ?", first[0].Seq).Find(&of).Error
	})
	switch {
	case err != nil:
		return w, change, fmt.Errorf("read what waits for webhook %s: %w", id, err)
	case len(hooks) == 0:
		return w, change, webhook.NotFound(id)
	}
	if w, err = hooks[0].webhook(); err != nil || len(first) == 0 {
		return w, change, err
	}
	change.Place = first[0].Seq
	if len(of) > 0 {
		change, err = of[0].change()
	}
	return w, change, err
}

// Tried implements delivery.Sender. It does nothing for a webhook that was deleted in between.
func (s *Store) Tried(ctx context.Context, lease job.Lease, t webhook.Try) (givenUp int, err error) {
	err = s.writeUnder(ctx, lease, func(tx *gorm.DB) error {
		givenUp = 0
		set := map[string]any{
			"writes": gorm.Expr("`writes` + 1"), "failing": t.Failures > 0, "failures": t.Failures,
			"next_at": int64(t.At.Add(t.Wait)), "disabled": t.Disabled,
		}
		switch {
		case t.Delivered:
			set["succeeded_at"] = int64(t.At)
		case t.Error != "":
			set["failed_at"], set["last_error"] = int64(t.At), t.Error
		}
		done := tx.Model(&webhookRow{}).Where("id = ?", t.WebhookID).Updates(set)
		if done.Error != nil || done.RowsAffected == 0 {
			return done.Error
		}
		if givenUp, err = removeTried(tx, t); err != nil {
			return err
		}
		if givenUp > 0 {
			if err := tx.Exec("UPDATE `webhooks` SET `dropped` = `dropped` + ? WHERE `id` = ?", givenUp, t.WebhookID).Error; err != nil {
				return err
			}
		}
		return tx.Exec("UPDATE `webhooks` SET `next_at` = 0 WHERE `id` = ? AND NOT EXISTS"+
			" (SELECT 1 FROM `webhook_deliveries` WHERE `webhook_deliveries`.`webhook_id` = `webhooks`.`id`)", t.WebhookID).Error
	})
	return givenUp, fault.While(err, "store what webhook %s answered", t.WebhookID)
}

// removeTried removes the delivery of a try that is done, and those that are too old, or all of a disabled webhook. It
// returns how many of them were not delivered.
func removeTried(tx *gorm.DB, t webhook.Try) (givenUp int, err error) {
	if t.Done {
		done := tx.Where("webhook_id = ? AND seq = ?", t.WebhookID, t.Place).Delete(&deliveryRow{})
		if done.Error != nil {
			return 0, done.Error
		}
		if !t.Delivered {
			givenUp += int(done.RowsAffected)
		}
	}
	old := tx.Where("webhook_id = ?", t.WebhookID)
	if t.Disabled == "" {
		old = old.Where("changed_at < ?", t.Before)
	}
	done := old.Delete(&deliveryRow{})
	return givenUp + int(done.RowsAffected), done.Error
}
