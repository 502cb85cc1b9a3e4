package store

import "gorm.io/gorm"

// The rows that migration 0007 adds, for the energy controller.

type powerRecord0007 struct {
	Host  string `gorm:"primaryKey;size:255"`
	State []byte `gorm:"size:1048576;not null"`
}

type powerEntry0007 struct {
	ID        int64  `gorm:"primaryKey;autoIncrement;index:idx_power_audit_host,priority:2"`
	At        int64  `gorm:"column:entered_at;not null;index:idx_power_audit_entered"`
	Host      string `gorm:"size:255;not null;index:idx_power_audit_host,priority:1"`
	Kind      string `gorm:"size:16;not null"`
	By        string `gorm:"column:by_whom;size:255;not null"`
	Operation string `gorm:"size:255;not null"`
	Text      string `gorm:"type:text;not null"`
	Token     string `gorm:"size:64;not null"`
}

type energySetting0007 struct {
	Name  string `gorm:"primaryKey;size:32"`
	Value []byte `gorm:"size:1048576;not null"`
}

type energyDemand0007 struct {
	At       int64 `gorm:"column:measured_at;primaryKey;autoIncrement:false"`
	InUse    int   `gorm:"not null"`
	Reserved int   `gorm:"not null"`
}

func (powerRecord0007) TableName() string   { return "power_records" }
func (powerEntry0007) TableName() string    { return "power_audit" }
func (energySetting0007) TableName() string { return "energy_settings" }
func (energyDemand0007) TableName() string  { return "energy_demand" }

func addEnergy(tx *gorm.DB) error {
	return createMissing(tx, &powerRecord0007{}, &powerEntry0007{}, &energySetting0007{}, &energyDemand0007{})
}
