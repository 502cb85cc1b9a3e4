package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// mostDecisions is how many decisions about one instance or request are given.
const mostDecisions = 100

// KeepDecisions stores decisions, all or none, with two statements for batch of them.
// One that is stored already is left as it is, so that a call of which nobody knows how
// it ended may be repeated. Texts are cut where a column ends.
func (s *Store) KeepDecisions(ctx context.Context, list []placing.Decision) error {
	rows, subjects, err := decisionRows(list)
	if err == nil && len(rows) > 0 {
		err = s.write(ctx, func(tx *gorm.DB) error {
			missing := tx.Clauses(clause.OnConflict{DoNothing: true}).Omit(clause.Associations).Session(&gorm.Session{})
			// A try before has put its keys into the rows.
			if err := missing.CreateInBatches(slices.Clone(rows), batch).Error; err != nil {
				return err
			}
			return missing.CreateInBatches(subjects, batch).Error
		})
	}
	if err != nil {
		return fmt.Errorf("store %d decisions: %w", len(list), err)
	}
	return nil
}

// Decisions gives what was decided about the instance or in the request with that id,
// the newest first, at most mostDecisions.
func (s *Store) Decisions(ctx context.Context, id string) ([]placing.Decision, error) {
	var rows []decisionRow
	err := s.look(ctx, func(db *gorm.DB) error { return about(db, id).Find(&rows).Error })
	if err != nil {
		return nil, fmt.Errorf("read the decisions about %s: %w", id, err)
	}
	// The database would sort explanations along.
	slices.SortFunc(rows, func(a, b decisionRow) int { return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(b.Seq, a.Seq)) })
	list := make([]placing.Decision, len(rows))
	for i := range rows {
		if list[i], err = rows[i].decision(); err != nil {
			return nil, fmt.Errorf("decode a decision about %s: %w", id, err)
		}
	}
	return list, nil
}

// about selects the newest decisions about a subject, in no order.
func about(db *gorm.DB, subject string) *gorm.DB {
	newest := db.Model(&subjectRow{}).Select("decision_hash").Where("subject = ?", subject).Order("decided_at DESC").Limit(mostDecisions)
	return db.Joins("JOIN (?) AS newest ON newest.decision_hash = decisions.hash", newest)
}

// PurgeDecisions forgets what was decided before an instant, batch of them in a
// transaction, and says how many. It fails with ErrLeaseLost where the lease has moved on.
func (s *Store) PurgeDecisions(ctx context.Context, lease job.Lease, before span.Instant) (n int, err error) {
	for {
		var old []int64
		err := s.writeUnder(ctx, lease, func(tx *gorm.DB) error {
			err := tx.Model(&decisionRow{}).Where("decided_at < ?", before).Order("decided_at").Limit(batch).Pluck("seq", &old).Error
			if err != nil || len(old) == 0 {
				return err
			}
			// Subjects go with their decision.
			return tx.Where("seq IN ?", old).Delete(&decisionRow{}).Error
		})
		if err != nil {
			return n, fmt.Errorf("purge decisions: %w", err)
		}
		n += len(old)
		if len(old) < batch {
			return n, nil
		}
	}
}
