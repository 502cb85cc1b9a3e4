// SPDX-License-Identifier: Apache-2.0

package store

import "gorm.io/gorm"

// maintenanceColumn is the column of reservations that marks maintenance.
type maintenanceColumn struct {
	Maintenance bool `gorm:"not null;default:false"`
}

func (maintenanceColumn) TableName() string { return "reservations" }

// addMaintenance adds the mark of maintenance to reservations.
func addMaintenance(tx *gorm.DB) error { return addColumns(tx, &maintenanceColumn{}, "Maintenance") }
