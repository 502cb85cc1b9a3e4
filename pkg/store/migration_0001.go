package store

import "gorm.io/gorm"

// The rows of migration 0001.

type reservation0001 struct {
	ID              string `gorm:"primaryKey;size:36;index:idx_reservations_project,priority:3;index:idx_reservations_start,priority:2;index:idx_reservations_status,priority:3"`
	ProjectID       string `gorm:"size:255;not null;index:idx_reservations_project,priority:1"`
	UserID          string `gorm:"size:255;not null"`
	Name            string `gorm:"size:255;not null"`
	Kind            string `gorm:"size:16;not null"`
	Quantity        int    `gorm:"not null"`
	HostProperties  string `gorm:"size:1048576;not null"`
	Policy          string `gorm:"size:32;not null"`
	VCPUs           int64  `gorm:"column:vcpus;not null"`
	MemoryMB        int64  `gorm:"column:memory_mb;not null"`
	DiskGB          int64  `gorm:"column:disk_gb;not null"`
	CustomResources string `gorm:"type:text;not null"`
	Affinity        string `gorm:"size:16;not null"`
	Image           string `gorm:"size:255;not null"`
	OnEnd           string `gorm:"size:16;not null"`
	BeforeEnd       int64  `gorm:"not null"`
	Status          string `gorm:"size:16;not null;index:idx_reservations_status,priority:1"`
	StartAt         int64  `gorm:"not null;index:idx_reservations_project,priority:2;index:idx_reservations_start,priority:1;index:idx_reservations_status,priority:2"`
	EndAt           int64  `gorm:"not null"`
	DelayedByBoot   bool   `gorm:"not null"`
	Degraded        string `gorm:"type:text;not null"`
	Created         int64  `gorm:"column:created_at;not null"`
	Updated         int64  `gorm:"column:updated_at;not null"`
	Version         int64  `gorm:"not null"`

	Claims []claim0001 `gorm:"foreignKey:ReservationID;constraint:OnDelete:CASCADE"`
	Events []event0001 `gorm:"foreignKey:ReservationID;constraint:OnDelete:CASCADE"`
}

type claim0001 struct {
	ReservationID string `gorm:"primaryKey;size:36"`
	Seq           int    `gorm:"primaryKey;autoIncrement:false"`
	Host          string `gorm:"size:255;not null;index:idx_claims_host,priority:1"`
	EndAt         int64  `gorm:"not null;index:idx_claims_host,priority:2"`
	StartAt       int64  `gorm:"not null;index:idx_claims_host,priority:3"`
	Slices        int    `gorm:"not null"`
}

type event0001 struct {
	ReservationID string `gorm:"primaryKey;size:36"`
	Seq           int    `gorm:"primaryKey;autoIncrement:false"`
	Type          string `gorm:"size:32;not null"`
	DueAt         int64  `gorm:"not null;index:idx_events_due,priority:2"`
	State         string `gorm:"size:16;not null;index:idx_events_due,priority:1"`
	DoneAt        int64  `gorm:"not null"`
	Detail        string `gorm:"type:text;not null"`
}

type key0001 struct {
	ProjectID      string `gorm:"primaryKey;size:255"`
	IdempotencyKey string `gorm:"primaryKey;size:255"`
	BodyHash       string `gorm:"size:255;not null"`
	ReservationID  string `gorm:"size:36;not null"`
	Created        int64  `gorm:"column:created_at;not null;index:idx_idempotency_keys_created"`
}

type override0001 struct {
	Host       string `gorm:"primaryKey;size:255"`
	Reservable *bool
	Properties string `gorm:"size:1048576;not null"`
}

type hidden0001 struct {
	Property string `gorm:"primaryKey;size:255"`
}

func (reservation0001) TableName() string { return "reservations" }
func (claim0001) TableName() string       { return "claims" }
func (event0001) TableName() string       { return "events" }
func (key0001) TableName() string         { return "idempotency_keys" }
func (override0001) TableName() string    { return "host_overrides" }
func (hidden0001) TableName() string      { return "hidden_properties" }

func createReservations(tx *gorm.DB) error {
	return createMissing(tx,
		&reservation0001{}, &claim0001{}, &event0001{}, &key0001{}, &override0001{}, &hidden0001{},
	)
}
