// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// mostDecisions is the largest number of decisions that Decisions returns.
const mostDecisions = 100

// KeepDecisions stores decisions, all or none, with two statements for each batch. It does not
// change a decision that is stored already, so that a call with an unknown outcome may be repeated.
// Texts in columns of their own are cut to the size of the column.
func (s *Store) KeepDecisions(ctx context.Context, list []placing.Decision) error {
	rows, subjects, err := decisionRows(list)
	if err == nil && len(rows) > 0 {
		err = s.write(ctx, func(tx *gorm.DB) error {
			tx = tx.Omit(clause.Associations).Session(&gorm.Session{})
			// An earlier attempt has set the keys of the rows.
			if err := tx.Clauses(unlessStored).CreateInBatches(slices.Clone(rows), batch).Error; err != nil {
				return err
			}
			return tx.Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches(subjects, batch).Error
		})
	}
	return fault.While(err, "store %d decisions", len(list))
}

// unlessStored leaves a decision that is stored already as it is. For DoNothing, gorm sets the first
// column to itself, and MySQL refuses that for a number that it assigns (error 1869).
var unlessStored = clause.OnConflict{
	Columns:   []clause.Column{{Name: "hash"}},
	DoUpdates: clause.Assignments(map[string]any{"hash": gorm.Expr("hash")}),
}

// Decisions returns the decisions about the instance or in the request with that id,
// the newest first, at most mostDecisions.
func (s *Store) Decisions(ctx context.Context, id string) ([]placing.Decision, error) {
	var rows []decisionRow
	err := s.look(ctx, func(db *gorm.DB) error { return about(db, id).Find(&rows).Error })
	if err != nil {
		return nil, fmt.Errorf("read the decisions about %s: %w", id, err)
	}
	// Sorting in the database would move the explanations, which are long.
	slices.SortFunc(rows, func(a, b decisionRow) int { return cmp.Or(cmp.Compare(b.At, a.At), cmp.Compare(b.Seq, a.Seq)) })
	list := make([]placing.Decision, len(rows))
	for i := range rows {
		if err := decompress(rows[i].Explanation, &list[i]); err != nil {
			return nil, fmt.Errorf("decode a decision about %s: %w", id, err)
		}
	}
	return list, nil
}

// about selects the newest decisions about an instance or a request, in any order.
func about(db *gorm.DB, subject string) *gorm.DB {
	newest := db.Model(&subjectRow{}).Select("decision_hash").Where("subject = ?", subject).Order("decided_at DESC").Limit(mostDecisions)
	return db.Joins("JOIN (?) AS newest ON newest.decision_hash = decisions.hash", newest)
}

// PurgeDecisions deletes the decisions before an instant, one batch in each transaction, and
// returns how many. It fails with job.ErrLost if another process has acquired the lease.
func (s *Store) PurgeDecisions(ctx context.Context, lease job.Lease, before span.Instant) (n int, err error) {
	return s.purgeOldest(ctx, lease, "decisions", &decisionRow{}, "seq", "decided_at", before)
}

// decisionRows returns the rows of decisions, and the rows of the subjects under which they are
// found.
func decisionRows(list []placing.Decision) (rows []decisionRow, subjects []subjectRow, err error) {
	for _, d := range list {
		d.RequestID, d.ProjectID = fitting(d.RequestID, 255), fitting(d.ProjectID, 255)
		d.Reservation, d.HandledBy = fitting(d.Reservation, 255), fitting(d.HandledBy, 16)
		row := decisionRow{RequestID: d.RequestID, ProjectID: d.ProjectID, Reservation: d.Reservation, HandledBy: d.HandledBy, At: int64(d.At)}
		text, err := encode(d)
		if err != nil {
			return nil, nil, fmt.Errorf("encode the decision in request %s: %w", d.RequestID, err)
		}
		whole := sha256.Sum256(text)
		row.Hash = hex.EncodeToString(whole[:16])
		if row.Explanation, err = compressed(text); err != nil {
			return nil, nil, fmt.Errorf("compress the decision in request %s: %w", d.RequestID, err)
		}
		rows = append(rows, row)
		for _, id := range slices.Compact(slices.Sorted(slices.Values(subjectsOf(d)))) {
			if id != "" {
				subjects = append(subjects, subjectRow{Subject: fitting(id, 255), At: row.At, Decision: row.Hash})
			}
		}
	}
	return rows, subjects, nil
}

// subjectsOf returns the ids under which a decision is found: the request, its instances, and their
// victims.
func subjectsOf(d placing.Decision) []string {
	ids := append([]string{d.RequestID}, d.Instances...)
	for _, p := range d.Placements {
		for _, v := range p.Victims {
			ids = append(ids, v.ID)
		}
	}
	return ids
}
