package store

import (
	"gorm.io/gorm"

	"github.com/almanac-cloud/almanac/reservation"
)

// The rows that migration 0002 adds, for any number of replicas.

type host0002 struct {
	Host    string `gorm:"primaryKey;size:255"`
	Version int64  `gorm:"not null"`
}

type usage0002 struct {
	ProjectID   string `gorm:"primaryKey;size:255"`
	Hosts       int64  `gorm:"not null"`
	HostSeconds int64  `gorm:"not null"`
}

type change0002 struct {
	Seq           int64  `gorm:"primaryKey;autoIncrement;index:idx_changes_sent,priority:2"`
	ReservationID string `gorm:"size:36;not null;uniqueIndex:idx_changes_reservation,priority:1"`
	Version       int64  `gorm:"not null;uniqueIndex:idx_changes_reservation,priority:2"`
	Action        string `gorm:"size:32;not null"`
	ProjectID     string `gorm:"size:255;not null"`
	UserID        string `gorm:"size:255;not null"`
	RequestID     string `gorm:"size:255;not null"`
	At            int64  `gorm:"column:changed_at;not null"`
	Detail        string `gorm:"type:text;not null"`
	State         string `gorm:"size:1048576;not null"`
	Token         string `gorm:"size:64;not null"`
	Sent          bool   `gorm:"not null;index:idx_changes_sent,priority:1"`
}

type lease0002 struct {
	Name      string `gorm:"primaryKey;size:255"`
	Holder    string `gorm:"size:255;not null"`
	Epoch     int64  `gorm:"not null"`
	ExpiresAt int64  `gorm:"not null"`
	Writes    int64  `gorm:"not null;default:0"`
}

// event0002 has what is new in an event, with defaults: the version before
// inserts events without it.
type event0002 struct {
	Holder  string `gorm:"size:255;not null;default:''"`
	UntilAt int64  `gorm:"not null;default:0"`
}

type key0002 struct {
	ReservationID string `gorm:"size:36;not null;index:idx_idempotency_keys_reservation"`
}

func (host0002) TableName() string   { return "host_versions" }
func (usage0002) TableName() string  { return "project_usage" }
func (change0002) TableName() string { return "changes" }
func (lease0002) TableName() string  { return "leases" }
func (event0002) TableName() string  { return "events" }
func (key0002) TableName() string    { return "idempotency_keys" }

func addReplicas(tx *gorm.DB) error {
	if err := createMissing(tx, &host0002{}, &usage0002{}, &change0002{}, &lease0002{}); err != nil {
		return err
	}
	schema := tx.Migrator()
	for _, column := range []string{"Holder", "UntilAt"} {
		if schema.HasColumn(&event0002{}, column) {
			continue
		}
		if err := schema.AddColumn(&event0002{}, column); err != nil {
			return err
		}
	}
	if index := "idx_idempotency_keys_reservation"; !schema.HasIndex(&key0002{}, index) {
		if err := schema.CreateIndex(&key0002{}, index); err != nil {
			return err
		}
	}
	return tx.Transaction(fillReplicas)
}

// fillReplicas counts what the live reservations hold, and their hosts as claimed
// once. It gives the same when it is run again.
func fillReplicas(tx *gorm.DB) error {
	holding := []reservation.Status{reservation.Pending, reservation.Starting, reservation.Active, reservation.Ending}
	for _, statement := range []struct {
		sql    string
		values []any
	}{
		{"DELETE FROM host_versions", nil},
		{"DELETE FROM project_usage", nil},
		{"INSERT INTO host_versions (host, version) SELECT DISTINCT c.host, 1 FROM claims c" +
			" JOIN reservations r ON r.id = c.reservation_id WHERE r.status IN ?", []any{holding}},
		{"INSERT INTO project_usage (project_id, hosts, host_seconds)" +
			" SELECT r.project_id, SUM(r.quantity), COALESCE(SUM((SELECT SUM((c.end_at - c.start_at) * CASE WHEN c.slices > 1 THEN c.slices ELSE 1 END)" +
			" FROM claims c WHERE c.reservation_id = r.id)), 0) FROM reservations r WHERE r.status IN ? GROUP BY r.project_id", []any{holding}},
	} {
		if err := tx.Exec(statement.sql, statement.values...).Error; err != nil {
			return err
		}
	}
	return nil
}
