// SPDX-License-Identifier: Apache-2.0

package store

import (
	"context"
	"encoding/json"
	"fmt"

	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/webhook"
)

// webhookRow is a webhook.
type webhookRow struct {
	ID          string `gorm:"primaryKey;size:36;index:idx_webhooks_project,priority:3"`
	ProjectID   string `gorm:"size:255;not null;index:idx_webhooks_project,priority:1"`
	AllProjects bool   `gorm:"not null;index:idx_webhooks_all"`
	UserID      string `gorm:"size:255;not null"`
	Name        string `gorm:"size:255;not null"`
	URL         string `gorm:"size:2048;not null"`
	Types       string `gorm:"type:text;not null"` // a JSON list
	Secret      string `gorm:"size:255;not null"`
	Created     int64  `gorm:"column:created_at;not null;index:idx_webhooks_project,priority:2"`
	// Failing is true if the last try failed. NextAt is when the first of the waiting deliveries is tried; 0 if none waits.
	Failing   bool   `gorm:"not null;index:idx_webhooks_next,priority:1"`
	NextAt    int64  `gorm:"not null;index:idx_webhooks_next,priority:2"`
	Failures  int    `gorm:"not null"`
	Succeeded int64  `gorm:"column:succeeded_at;not null"`
	Failed    int64  `gorm:"column:failed_at;not null"`
	LastError string `gorm:"type:text;not null"`
	Disabled  string `gorm:"type:text;not null"`
	Dropped   int64  `gorm:"not null"`
	// Writes grows with each change of what waits: otherwise Galera does not notice that a delivery that is added at one node
	// conflicts with the end of the last one at another.
	Writes int64 `gorm:"not null"`
}

func (webhookRow) TableName() string { return "webhooks" }

// deliveryRow is a change that waits to be told to a webhook.
type deliveryRow struct {
	WebhookID string `gorm:"primaryKey;size:36"`
	Seq       int64  `gorm:"primaryKey;autoIncrement:false"` // of the change
	Changed   int64  `gorm:"column:changed_at;not null"`
}

func (deliveryRow) TableName() string { return "webhook_deliveries" }

// hookedColumn is the column of changes that states whether the deliveries are stored. Those of before webhooks have none.
type hookedColumn struct {
	Seq    int64 `gorm:"primaryKey;autoIncrement;index:idx_changes_hooked,priority:2"`
	Hooked bool  `gorm:"not null;default:true;index:idx_changes_hooked,priority:1"`
}

func (hookedColumn) TableName() string { return "changes" }

// addWebhooks adds webhooks and their deliveries.
func addWebhooks(tx *gorm.DB) error {
	if err := createMissing(tx, &webhookRow{}, &deliveryRow{}); err != nil {
		return err
	}
	if err := addColumns(tx, &hookedColumn{}, "Hooked"); err != nil {
		return err
	}
	schema := tx.Migrator()
	if schema.HasIndex(&hookedColumn{}, "idx_changes_hooked") {
		return nil
	}
	return schema.CreateIndex(&hookedColumn{}, "idx_changes_hooked")
}

func (row *webhookRow) webhook() (w webhook.Webhook, err error) {
	w = webhook.Webhook{
		ID: row.ID, ProjectID: row.ProjectID, AllProjects: row.AllProjects, UserID: row.UserID, Name: row.Name, URL: row.URL,
		Secret: webhook.Secret(row.Secret), Created: span.Instant(row.Created),
		Standing: webhook.Standing{
			NextTry: span.Instant(row.NextAt), Failures: row.Failures, Succeeded: span.Instant(row.Succeeded), Failed: span.Instant(row.Failed),
			LastError: row.LastError, Disabled: row.Disabled, Dropped: row.Dropped,
		},
	}
	if err = json.Unmarshal([]byte(row.Types), &w.Types); err != nil {
		err = fmt.Errorf("decode the types of webhook %s: %w", row.ID, err)
	}
	return w, err
}

// AddWebhook stores a new webhook. It fails with a Conflict fault if the project has most of them already.
func (s *Store) AddWebhook(ctx context.Context, w webhook.Webhook, most int) error {
	types, err := json.Marshal(w.Types)
	if err != nil {
		return fmt.Errorf("encode the types of a webhook: %w", err)
	}
	err = s.write(ctx, func(tx *gorm.DB) error {
		if err := s.inTurn(tx, "webhooks of projects"); err != nil {
			return err
		}
		var there []string
		if err := owned(tx.Model(&webhookRow{}), w.ProjectID).Limit(most).Pluck("id", &there).Error; err != nil {
			return err
		}
		for _, id := range there {
			if id == w.ID { // an earlier attempt, whose outcome was unknown
				return nil
			}
		}
		if len(there) >= most {
			return fault.New(fault.Conflict, "the project has %s, which is the most; delete one", fault.Counted(len(there), "webhook"))
		}
		return tx.Create(&webhookRow{
			ID: w.ID, ProjectID: w.ProjectID, AllProjects: w.AllProjects, UserID: w.UserID, Name: w.Name, URL: w.URL,
			Types: string(types), Secret: string(w.Secret), Created: int64(w.Created),
		}).Error
	})
	return fault.While(err, "store webhook %s", w.ID)
}

// Webhook returns a webhook with the number of its waiting deliveries, or a NotFound fault.
func (s *Store) Webhook(ctx context.Context, id string) (w webhook.Webhook, err error) {
	list, err := s.webhooks(ctx, func(tx *gorm.DB) (*gorm.DB, error) { return tx.Where("id = ?", id), nil })
	if err == nil && len(list) == 0 {
		return w, webhook.NotFound(id)
	}
	if err != nil {
		return w, fmt.Errorf("read webhook %s: %w", id, err)
	}
	return list[0], nil
}

// Webhooks returns webhooks with the numbers of their waiting deliveries.
func (s *Store) Webhooks(ctx context.Context, q webhook.Query) (list []webhook.Webhook, err error) {
	list, err = s.webhooks(ctx, func(tx *gorm.DB) (*gorm.DB, error) {
		found := tx.Order("created_at, id")
		of := func(db *gorm.DB) *gorm.DB {
			if q.ProjectID != "" {
				return owned(db, q.ProjectID)
			}
			return db
		}
		if q.Marker != "" {
			var marked []webhookRow
			if err := of(tx.Where("id = ?", q.Marker)).Find(&marked).Error; err != nil {
				return nil, err
			}
			if len(marked) == 0 {
				return nil, fault.Field("marker", "there is no webhook %s", q.Marker)
			}
			found = found.Where("(created_at > ? OR created_at = ? AND id > ?)", marked[0].Created, marked[0].Created, q.Marker)
		}
		if q.Limit > 0 {
			found = found.Limit(q.Limit)
		}
		return of(found), nil
	})
	return list, fault.While(err, "list webhooks")
}

// webhooks returns the webhooks that scope selects, with the numbers of their waiting deliveries.
func (s *Store) webhooks(ctx context.Context, scope func(tx *gorm.DB) (*gorm.DB, error)) (list []webhook.Webhook, err error) {
	var rows []webhookRow
	var waiting []waitingRow
	err = s.read(ctx, func(tx *gorm.DB) error {
		rows, waiting = nil, nil
		found, err := scope(tx)
		if err != nil {
			return err
		}
		if err := found.Find(&rows).Error; err != nil {
			return err
		}
		var ids []string
		for _, row := range rows {
			if row.NextAt > 0 {
				ids = append(ids, row.ID)
			}
		}
		waiting, err = waitingFor(tx, ids)
		return err
	})
	if err != nil {
		return nil, err
	}
	count := map[string]int{}
	for _, w := range waiting {
		count[w.WebhookID] = w.Waiting
	}
	for i := range rows {
		w, err := rows[i].webhook()
		if err != nil {
			return nil, err
		}
		w.Waiting = count[w.ID]
		list = append(list, w)
	}
	return list, nil
}

// waitingRow is how many deliveries wait for a webhook.
type waitingRow struct {
	WebhookID string
	Waiting   int
}

// waitingFor counts the deliveries that wait for webhooks; those without any are left out.
func waitingFor(tx *gorm.DB, ids []string) (list []waitingRow, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	err = tx.Model(&deliveryRow{}).Where("webhook_id IN ?", ids).Select("webhook_id, COUNT(*) AS waiting").Group("webhook_id").Find(&list).Error
	return list, err
}

// RemoveWebhook deletes a webhook and what waits for it. It fails with a NotFound fault if there is none.
func (s *Store) RemoveWebhook(ctx context.Context, id string) error {
	gone := false
	err := s.write(ctx, func(tx *gorm.DB) error {
		done := tx.Where("id = ?", id).Delete(&webhookRow{})
		if done.Error != nil {
			return done.Error
		}
		gone = gone || done.RowsAffected > 0
		return tx.Where("webhook_id = ?", id).Delete(&deliveryRow{}).Error
	})
	if err == nil && !gone {
		return webhook.NotFound(id)
	}
	return fault.While(err, "delete webhook %s", id)
}
