// SPDX-License-Identifier: Apache-2.0

package store

import "gorm.io/gorm"

// movableColumns are the columns that migration 0009 adds to reservations.
type movableColumns struct {
	Notice      int64 `gorm:"not null;default:0"`
	WindowStart int64 `gorm:"not null;default:0"`
	WindowEnd   int64 `gorm:"not null;default:0"`
}

func (movableColumns) TableName() string { return "reservations" }

// addMovable adds the notice and the window of reservations that may be moved.
func addMovable(tx *gorm.DB) error {
	return addColumns(tx, &movableColumns{}, "Notice", "WindowStart", "WindowEnd")
}
