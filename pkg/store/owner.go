// SPDX-License-Identifier: Apache-2.0

package store

import "gorm.io/gorm"

// owned restricts a query to the reservations or leases of a project. It is their BelongsTo
// (reservation/owner.go) in SQL: change both together, tests/storetest compares them.
func owned(found *gorm.DB, project string) *gorm.DB { return found.Where("project_id = ?", project) }

// ownedByAny restricts a query to the reservations or leases of several projects, as owned does.
func ownedByAny(found *gorm.DB, projects []string) *gorm.DB {
	return found.Where("project_id IN ?", projects)
}
