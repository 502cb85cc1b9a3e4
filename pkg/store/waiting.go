// SPDX-License-Identifier: Apache-2.0

package store

import "gorm.io/gorm"

// waitingColumns are the columns that migration 0012 adds to the reservations.
type waitingColumns struct {
	Hold int64 `gorm:"not null;default:0"`
}

func (waitingColumns) TableName() string { return "reservations" }

// addWaiting is migration 0012: what a waiting reservation becomes. It is added without a look at the rows that are there.
func addWaiting(tx *gorm.DB) error {
	return addColumns(tx, &waitingColumns{}, "Hold")
}
