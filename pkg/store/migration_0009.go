package store

import "gorm.io/gorm"

// The rows that migration 0009 adds, for best-effort work.

type bestEffort0009 struct {
	Place       int64  `gorm:"primaryKey;autoIncrement"`
	ID          string `gorm:"size:36;not null;uniqueIndex:idx_besteffort_id"`
	ProjectID   string `gorm:"size:255;not null;uniqueIndex:idx_besteffort_key,priority:1"`
	RequestKey  string `gorm:"size:255;not null;uniqueIndex:idx_besteffort_key,priority:2"`
	BodyHash    string `gorm:"size:64;not null"`
	CreatedAt   int64  `gorm:"column:created_at;autoCreateTime:false;not null"`
	CancelledAt int64  `gorm:"not null"`
	OverAt      int64  `gorm:"not null;index:idx_besteffort_over"`
	Terms       []byte `gorm:"size:1048576;not null"`
	UserData    string `gorm:"size:1048576;not null"`
}

type bestEffortVM0009 struct {
	ID        string `gorm:"primaryKey;size:36"`
	RequestID string `gorm:"size:36;not null;index:idx_besteffort_vms_request"`
	Number    int    `gorm:"not null"`
	Phase     string `gorm:"size:16;not null"`
	Server    string `gorm:"column:server_id;size:36;not null;index:idx_besteffort_vms_server"`
	State     []byte `gorm:"size:1048576;not null"`
}

func (bestEffort0009) TableName() string   { return "besteffort_requests" }
func (bestEffortVM0009) TableName() string { return "besteffort_vms" }

func addBestEffort(tx *gorm.DB) error {
	return createMissing(tx, &bestEffort0009{}, &bestEffortVM0009{})
}
