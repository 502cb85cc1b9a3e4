package store

import "gorm.io/gorm"

// The rows that migration 0004 adds, for decisions about instances.

type decision0004 struct {
	Seq         int64  `gorm:"primaryKey;autoIncrement"`
	Hash        string `gorm:"size:32;not null;uniqueIndex:idx_decisions_hash"`
	RequestID   string `gorm:"size:255;not null"`
	ProjectID   string `gorm:"size:255;not null"`
	Reservation string `gorm:"column:reservation_id;size:255;not null"`
	Way         string `gorm:"size:16;not null"`
	At          int64  `gorm:"column:decided_at;not null;index:idx_decisions_decided"`
	Explanation []byte `gorm:"size:1048576;not null"`

	Subjects []subject0004 `gorm:"foreignKey:Decision;references:Hash;constraint:OnDelete:CASCADE"`
}

type subject0004 struct {
	Subject  string `gorm:"primaryKey;size:255"`
	At       int64  `gorm:"column:decided_at;primaryKey;autoIncrement:false"`
	Decision string `gorm:"column:decision_hash;primaryKey;size:32;index:idx_decision_subjects_decision"`
}

func (decision0004) TableName() string { return "decisions" }
func (subject0004) TableName() string  { return "decision_subjects" }

func addDecisions(tx *gorm.DB) error { return createMissing(tx, &decision0004{}, &subject0004{}) }
