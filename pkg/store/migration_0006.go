package store

import "gorm.io/gorm"

// eviction0006 is an eviction under way.
type eviction0006 struct {
	ID      string `gorm:"primaryKey;size:255"`
	Replica string `gorm:"size:255;not null"`
	State   []byte `gorm:"size:1048576;not null"`
}

func (eviction0006) TableName() string { return "evictions" }

func addEvictions(tx *gorm.DB) error { return createMissing(tx, &eviction0006{}) }
