package store

import "gorm.io/gorm"

// packingRun0010 is a rebalance.Run: a plan of migrations that is carried out.
type packingRun0010 struct {
	Place int64  `gorm:"primaryKey;autoIncrement"`
	ID    string `gorm:"size:36;not null;uniqueIndex:idx_packing_runs_id"`
	Over  bool   `gorm:"column:is_over;not null"`
	State []byte `gorm:"size:16777215;not null"`
}

func (packingRun0010) TableName() string { return "packing_runs" }

func addPacking(tx *gorm.DB) error { return createMissing(tx, &packingRun0010{}) }
