package store

import "gorm.io/gorm"

// usage0011 has what is new in a project's usage, with a default: the version before
// inserts rows without it.
type usage0011 struct {
	Version int64 `gorm:"not null;default:0"`
}

// reservation0011 has the index that finds what a project holds among all that it ever had.
type reservation0011 struct {
	ProjectID string `gorm:"size:255;not null;index:idx_reservations_held,priority:1"`
	Status    string `gorm:"size:16;not null;index:idx_reservations_held,priority:2"`
}

func (usage0011) TableName() string       { return "project_usage" }
func (reservation0011) TableName() string { return "reservations" }

func addLimits(tx *gorm.DB) error {
	schema := tx.Migrator()
	if !schema.HasColumn(&usage0011{}, "Version") {
		if err := schema.AddColumn(&usage0011{}, "Version"); err != nil {
			return err
		}
	}
	if index := "idx_reservations_held"; !schema.HasIndex(&reservation0011{}, index) {
		return schema.CreateIndex(&reservation0011{}, index)
	}
	return nil
}
