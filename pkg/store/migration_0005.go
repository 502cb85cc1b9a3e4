package store

import "gorm.io/gorm"

// guest0005 is what is remembered of an instance that was placed by a hint.
type guest0005 struct {
	Instance    string `gorm:"column:instance_id;primaryKey;size:255"`
	Reservation string `gorm:"column:reservation_id;size:255;not null"`
	Preemptible bool   `gorm:"not null"`
	At          int64  `gorm:"column:placed_at;not null;index:idx_guests_placed"`
}

func (guest0005) TableName() string { return "guests" }

func addGuests(tx *gorm.DB) error { return createMissing(tx, &guest0005{}) }
