package store

import "gorm.io/gorm"

// override0003 has what is new in an override; NULL leaves it to the source, which
// is what the version before writes.
type override0003 struct {
	Power *string `gorm:"size:16"`
}

func (override0003) TableName() string { return "host_overrides" }

func addPower(tx *gorm.DB) error {
	schema := tx.Migrator()
	if schema.HasColumn(&override0003{}, "Power") {
		return nil
	}
	return schema.AddColumn(&override0003{}, "Power")
}
