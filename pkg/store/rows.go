// SPDX-License-Identifier: Apache-2.0

package store

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
)

// The rows of all tables. Times are Unix seconds. Sizes are in characters, where the
// database has sizes; 1048576 makes a column of 16 MiB in MariaDB, whose plain TEXT has
// 64 KiB. The log of changes also has reservations with their parts, as JSON with the
// names that the fields have here.

type reservationRow struct {
	ID              string `gorm:"primaryKey;size:36;index:idx_reservations_project,priority:3;index:idx_reservations_start,priority:2;index:idx_reservations_status,priority:3"`
	ProjectID       string `gorm:"size:255;not null;index:idx_reservations_project,priority:1;index:idx_reservations_held,priority:1"`
	UserID          string `gorm:"size:255;not null"`
	Name            string `gorm:"size:255;not null" of:"Name,own"`
	Kind            string `gorm:"size:16;not null"`
	Quantity        int    `gorm:"not null"`
	HostProperties  string `gorm:"size:1048576;not null"`
	Policy          string `gorm:"size:32;not null"`
	VCPUs           int64  `gorm:"column:vcpus;not null" of:"Resources.VCPUs"`
	MemoryMB        int64  `gorm:"column:memory_mb;not null" of:"Resources.MemoryMB"`
	DiskGB          int64  `gorm:"column:disk_gb;not null" of:"Resources.DiskGB"`
	CustomResources string `gorm:"type:text;not null" of:"-"` // a JSON object, or empty
	Affinity        string `gorm:"size:16;not null"`
	Image           string `gorm:"size:255;not null"`
	OnEnd           string `gorm:"size:16;not null"`
	BeforeEnd       int64  `gorm:"not null"`
	Status          string `gorm:"size:16;not null;index:idx_reservations_status,priority:1;index:idx_reservations_held,priority:2"`
	StartAt         int64  `gorm:"not null;index:idx_reservations_project,priority:2;index:idx_reservations_start,priority:1;index:idx_reservations_status,priority:2" of:"Span.Start"`
	EndAt           int64  `gorm:"not null" of:"Span.End"`
	DelayedByBoot   bool   `gorm:"not null"`
	Degraded        string `gorm:"type:text;not null" of:"Degraded,own"`
	Created         int64  `gorm:"column:created_at;not null"`
	Updated         int64  `gorm:"column:updated_at;not null"`
	Version         int64  `gorm:"not null"`

	// Migration 0002 adds these. The log leaves them out for reservations without a lease.
	LeaseID    string  `gorm:"size:36;not null;-:migration" of:"Membership.LeaseID" json:",omitempty"`
	Membership *string `gorm:"size:1048576;-:migration" of:"-" json:",omitempty"` // a reservation.Membership as JSON

	// Migration 0006 adds this one.
	Maintenance bool `gorm:"not null;-:migration" json:",omitempty"`

	// Migration 0007 adds these.
	Released    int64 `gorm:"not null;-:migration" json:",omitempty"`
	PromisedEnd int64 `gorm:"not null;-:migration" json:",omitempty"`

	// Migration 0008 adds this one.
	Together *string `gorm:"size:2048;-:migration" of:"-" json:",omitempty"` // a reservation.Together as JSON

	// Migration 0009 adds these.
	Notice      int64 `gorm:"not null;-:migration" json:",omitempty"`
	WindowStart int64 `gorm:"not null;-:migration" of:"Window.Start" json:",omitempty"`
	WindowEnd   int64 `gorm:"not null;-:migration" of:"Window.End" json:",omitempty"`

	// Migration 0010 adds these.
	SeriesID   string `gorm:"size:36;not null;-:migration" of:"Occurrence.SeriesID" json:",omitempty"`
	Occurrence string `gorm:"size:32;not null;-:migration" of:"Occurrence.Local" json:",omitempty"`

	// Migration 0012 adds this one.
	Hold int64 `gorm:"not null;-:migration" json:",omitempty"`

	Claims []claimRow `gorm:"foreignKey:ReservationID;constraint:OnDelete:CASCADE"`
	Events []eventRow `gorm:"foreignKey:ReservationID;constraint:OnDelete:CASCADE"`
	// Addresses are those of kind address; the table came with a later migration.
	Addresses []addressClaimRow `gorm:"foreignKey:ReservationID;constraint:OnDelete:CASCADE" json:",omitempty"`
}

var reservationColumns = columnsOf[reservationRow, reservation.Reservation]()

type claimRow struct {
	ReservationID string `gorm:"primaryKey;size:36" of:"-" json:"-"`
	Seq           int    `gorm:"primaryKey;autoIncrement:false" of:"-" json:"-"` // place among the reservation's claims, from 0
	Host          string `gorm:"size:255;not null;index:idx_claims_host,priority:1"`
	EndAt         int64  `gorm:"not null;index:idx_claims_host,priority:2" of:"Span.End"`
	StartAt       int64  `gorm:"not null;index:idx_claims_host,priority:3" of:"Span.Start"`
	Slices        int    `gorm:"not null"`
}

var claimColumns = columnsOf[claimRow, reservation.Claim]()

type eventRow struct {
	ReservationID string `gorm:"primaryKey;size:36" of:"-" json:"-"`
	Seq           int    `gorm:"primaryKey;autoIncrement:false" of:"-" json:"-"` // grows from event to event of a reservation, with gaps
	Type          string `gorm:"size:32;not null"`
	DueAt         int64  `gorm:"not null;index:idx_events_due,priority:2" of:"Time"`
	State         string `gorm:"size:16;not null;index:idx_events_due,priority:1"`
	DoneAt        int64  `gorm:"not null" of:"Done"`
	Detail        string `gorm:"type:text;not null" of:"Detail,own"`
	Holder        string `gorm:"size:255;not null;default:''"`
	UntilAt       int64  `gorm:"not null;default:0" of:"Until"`
}

var eventColumns = columnsOf[eventRow, reservation.Event]()

type keyRow struct {
	ProjectID      string `gorm:"primaryKey;size:255"`
	IdempotencyKey string `gorm:"primaryKey;size:255"`
	BodyHash       string `gorm:"size:255;not null"`
	ReservationID  string `gorm:"size:36;not null;index:idx_idempotency_keys_reservation"`
	Created        int64  `gorm:"column:created_at;not null;index:idx_idempotency_keys_created"`
}

type overrideRow struct {
	Host       string `gorm:"primaryKey;size:255"`
	Reservable *bool
	Properties string  `gorm:"size:1048576;not null"` // a JSON object, or empty; null removes a property
	Power      *string `gorm:"size:16"`
}

type hiddenRow struct {
	Property string `gorm:"primaryKey;size:255"`
}

type hostRow struct {
	Host    string `gorm:"primaryKey;size:255"`
	Version int64  `gorm:"not null"`
}

type usageRow struct {
	ProjectID   string `gorm:"primaryKey;size:255"`
	Hosts       int64  `gorm:"not null"`
	HostSeconds int64  `gorm:"not null"`
	Version     int64  `gorm:"not null;default:0"` // grows when the project holds more at once
}

type changeRow struct {
	Seq           int64  `gorm:"primaryKey;autoIncrement;index:idx_changes_sent,priority:2"`
	ReservationID string `gorm:"size:36;not null;uniqueIndex:idx_changes_reservation,priority:1"`
	Version       int64  `gorm:"not null;uniqueIndex:idx_changes_reservation,priority:2"`
	Action        string `gorm:"size:32;not null"`
	ProjectID     string `gorm:"size:255;not null"`
	UserID        string `gorm:"size:255;not null"`
	RequestID     string `gorm:"size:255;not null"`
	At            int64  `gorm:"column:changed_at;not null"`
	Detail        string `gorm:"type:text;not null"`
	State         string `gorm:"size:1048576;not null"` // a reservationRow with its latest events as a JSON object
	Token         string `gorm:"size:64;not null"`
	Sent          bool   `gorm:"not null;index:idx_changes_sent,priority:1"`

	// Migration 0011 adds this one: whether the deliveries to webhooks are stored.
	Hooked bool `gorm:"not null;-:migration"`
}

type leaseRow struct {
	Name      string `gorm:"primaryKey;size:255"`
	Holder    string `gorm:"size:255;not null"`
	Epoch     int64  `gorm:"not null"`
	ExpiresAt int64  `gorm:"not null"` // in milliseconds since 1970
	Writes    int64  `gorm:"not null;default:0"`
}

type decisionRow struct {
	Seq         int64  `gorm:"primaryKey;autoIncrement"`
	Hash        string `gorm:"size:32;not null;uniqueIndex:idx_decisions_hash"` // of the decision, which is stored once
	RequestID   string `gorm:"size:255;not null"`
	ProjectID   string `gorm:"size:255;not null"`
	Reservation string `gorm:"column:reservation_id;size:255;not null"`
	HandledBy   string `gorm:"size:16;not null"`
	At          int64  `gorm:"column:decided_at;not null;index:idx_decisions_decided"`
	Explanation []byte `gorm:"size:1048576;not null"` // a placing.Decision as JSON, compressed with gzip

	Subjects []subjectRow `gorm:"foreignKey:Decision;references:Hash;constraint:OnDelete:CASCADE"`
}

// subjectRow relates the id of an instance or of a request to a decision about it.
type subjectRow struct {
	Subject  string `gorm:"primaryKey;size:255"`
	At       int64  `gorm:"column:decided_at;primaryKey;autoIncrement:false"`
	Decision string `gorm:"column:decision_hash;primaryKey;size:32;index:idx_decision_subjects_decision"`
}

type instanceRecordRow struct {
	Instance    string `gorm:"column:instance_id;primaryKey;size:255"`
	Reservation string `gorm:"column:reservation_id;size:255;not null"` // empty is none
	Preemptible bool   `gorm:"not null"`
	At          int64  `gorm:"column:placed_at;not null;index:idx_instance_records_placed"` // when it was last requested
}

type evictionRow struct {
	ID      string `gorm:"primaryKey;size:255"`
	Replica string `gorm:"size:255;not null"`     // that carries it out
	State   []byte `gorm:"size:1048576;not null"` // an eviction.Record as JSON
}

type powerRow struct {
	Host  string `gorm:"primaryKey;size:255"`
	State []byte `gorm:"size:1048576;not null"` // an energy.Record as JSON
}

type powerEntryRow struct {
	ID        int64  `gorm:"primaryKey;autoIncrement;index:idx_power_audit_host,priority:2"`
	At        int64  `gorm:"column:entered_at;not null;index:idx_power_audit_entered"`
	Host      string `gorm:"size:255;not null;index:idx_power_audit_host,priority:1"`
	Kind      string `gorm:"size:16;not null"`
	By        string `gorm:"column:by_whom;size:255;not null"`
	Operation string `gorm:"size:255;not null"`
	Text      string `gorm:"type:text;not null"`
	Token     string `gorm:"size:64;not null"` // of the transaction that added it
}

type energyRow struct {
	Name  string `gorm:"primaryKey;size:32"`
	Value []byte `gorm:"size:1048576;not null"` // JSON, compressed with gzip
}

type demandRow struct {
	At       int64 `gorm:"column:measured_at;primaryKey;autoIncrement:false"`
	InUse    int   `gorm:"not null"`
	Reserved int   `gorm:"not null"`
}

type imageRow struct {
	ID     string `gorm:"primaryKey;size:255"`
	Name   string `gorm:"size:255;not null"`
	Bytes  int64  `gorm:"not null"`
	Looked int64  `gorm:"column:looked_at;not null"`
	Gone   bool   `gorm:"not null"`
}

type imageTransferRow struct {
	ID           string `gorm:"primaryKey;size:64"`
	Call         string `gorm:"column:request_id;size:64;not null;index:idx_image_transfers_request"`
	Image        string `gorm:"column:image_id;size:255;not null"`
	Host         string `gorm:"size:255;not null"`
	Bytes        int64  `gorm:"not null"`
	Reservations string `gorm:"size:1048576;not null"` // ids as a JSON list
	Deadline     int64  `gorm:"column:deadline_at;not null"`
	Started      int64  `gorm:"column:started_at;not null"`
	Expected     int64  `gorm:"column:expected_at;not null"`
	Bound        int64  `gorm:"column:bound_at;not null"`
	Expire       int64  `gorm:"column:expire_at;not null;index:idx_image_transfers_expire,priority:2"`
	Begun        int64  `gorm:"column:begun_at;not null"`
	Finished     int64  `gorm:"column:finished_at;not null;index:idx_image_transfers_finished,priority:2"`
	Outcome      string `gorm:"size:16;not null;index:idx_image_transfers_finished,priority:1;index:idx_image_transfers_expire,priority:1"` // empty while it is under way
	Detail       string `gorm:"type:text;not null"`
}

type cachedImageRow struct {
	Image    string `gorm:"column:image_id;primaryKey;size:255"`
	Host     string `gorm:"primaryKey;size:255"`
	Bytes    int64  `gorm:"not null"`
	Since    int64  `gorm:"column:since_at;not null"`
	LastUsed int64  `gorm:"column:last_used_at;not null"`
}

type bestEffortRow struct {
	Place      int64  `gorm:"primaryKey;autoIncrement"`
	ID         string `gorm:"size:36;not null;uniqueIndex:idx_besteffort_id"`
	ProjectID  string `gorm:"size:255;not null;uniqueIndex:idx_besteffort_key,priority:1"`
	RequestKey string `gorm:"size:255;not null;uniqueIndex:idx_besteffort_key,priority:2"` // the id of a request without a key
	BodyHash   string `gorm:"size:64;not null"`
	CreatedAt  int64  `gorm:"column:created_at;autoCreateTime:false;not null"`
	CanceledAt int64  `gorm:"not null"`
	OverAt     int64  `gorm:"not null;index:idx_besteffort_over"`
	Terms      []byte `gorm:"size:1048576;not null"` // a controller.Request as JSON
	UserData   string `gorm:"size:1048576;not null"`
}

type bestEffortVMRow struct {
	ID        string `gorm:"primaryKey;size:36"`
	RequestID string `gorm:"size:36;not null;index:idx_besteffort_vms_request"`
	Number    int    `gorm:"not null"`
	Phase     string `gorm:"size:16;not null"`
	Server    string `gorm:"column:server_id;size:36;not null;index:idx_besteffort_vms_server"`
	State     []byte `gorm:"size:1048576;not null"` // a controller.VM as JSON
}

type packingRunRow struct {
	Place int64  `gorm:"primaryKey;autoIncrement"`
	ID    string `gorm:"size:36;not null;uniqueIndex:idx_packing_runs_id"`
	Over  bool   `gorm:"column:is_over;not null"`
	State []byte `gorm:"size:16777215;not null"` // a rebalance.Run as JSON
}

func (reservationRow) TableName() string    { return "reservations" }
func (claimRow) TableName() string          { return "claims" }
func (eventRow) TableName() string          { return "events" }
func (keyRow) TableName() string            { return "idempotency_keys" }
func (overrideRow) TableName() string       { return "host_overrides" }
func (hiddenRow) TableName() string         { return "hidden_properties" }
func (instanceRecordRow) TableName() string { return "instance_records" }
func (evictionRow) TableName() string       { return "evictions" }
func (hostRow) TableName() string           { return "host_versions" }
func (usageRow) TableName() string          { return "project_usage" }
func (changeRow) TableName() string         { return "changes" }
func (leaseRow) TableName() string          { return "leases" }
func (decisionRow) TableName() string       { return "decisions" }
func (subjectRow) TableName() string        { return "decision_subjects" }
func (powerRow) TableName() string          { return "power_records" }
func (powerEntryRow) TableName() string     { return "power_audit" }
func (energyRow) TableName() string         { return "energy_settings" }
func (demandRow) TableName() string         { return "energy_demand" }
func (imageRow) TableName() string          { return "images" }
func (imageTransferRow) TableName() string  { return "image_transfers" }
func (cachedImageRow) TableName() string    { return "cached_images" }
func (bestEffortRow) TableName() string     { return "besteffort_requests" }
func (bestEffortVMRow) TableName() string   { return "besteffort_vms" }
func (packingRunRow) TableName() string     { return "packing_runs" }

func rowOf(r reservation.Reservation) (reservationRow, error) {
	custom, err := encodeMap(r.Resources.Custom)
	if err != nil {
		return reservationRow{}, fmt.Errorf("encode custom resources: %w", err)
	}
	membership, err := encodeMembership(r.Membership)
	if err != nil {
		return reservationRow{}, fmt.Errorf("encode its part in the lease: %w", err)
	}
	together, err := encodeTogether(r.Together)
	if err != nil {
		return reservationRow{}, fmt.Errorf("encode how its hosts lie to each other: %w", err)
	}
	row := reservationRow{
		CustomResources: custom, Membership: membership, Together: together,
		Claims: make([]claimRow, len(r.Claims)), Events: make([]eventRow, len(r.Events)), Addresses: addressClaimRows(r),
	}
	reservationColumns.store(&row, &r)
	for i := range r.Claims {
		row.Claims[i] = claimRow{ReservationID: r.ID, Seq: i}
		claimColumns.store(&row.Claims[i], &r.Claims[i])
	}
	for i := range r.Events {
		row.Events[i] = eventRow{ReservationID: r.ID, Seq: i}
		eventColumns.store(&row.Events[i], &r.Events[i])
	}
	return row, nil
}

func (row *reservationRow) reservation() (reservation.Reservation, error) {
	custom, err := decodeMap[int64](row.CustomResources)
	if err != nil {
		return reservation.Reservation{}, fmt.Errorf("decode custom resources of reservation %s: %w", row.ID, err)
	}
	membership, err := decodeMembership(row)
	if err != nil {
		return reservation.Reservation{}, fmt.Errorf("decode the part of reservation %s in its lease: %w", row.ID, err)
	}
	r := reservation.Reservation{
		Membership: membership,
		Claims:     slices.Grow([]reservation.Claim(nil), len(row.Claims))[:len(row.Claims)],
		Events:     slices.Grow([]reservation.Event(nil), len(row.Events))[:len(row.Events)],
	}
	r.Resources.Custom = custom
	if r.Together, err = decodeTogether(row); err != nil {
		return reservation.Reservation{}, fmt.Errorf("decode how the hosts of reservation %s lie to each other: %w", row.ID, err)
	}
	reservationColumns.load(&r, row)
	r.Terms = r.Repaired()
	for i := range row.Claims {
		claimColumns.load(&r.Claims[i], &row.Claims[i])
	}
	for i := range row.Events {
		eventColumns.load(&r.Events[i], &row.Events[i])
	}
	for _, a := range row.Addresses {
		r.Addresses = append(r.Addresses, address.Claim{Network: a.NetworkID, Address: a.Address, Required: a.Required})
	}
	return r, nil
}

func spanOf(start, end int64) span.Span {
	return span.Span{Start: span.Instant(start), End: span.Instant(end)}
}

// encodeMap returns a map as JSON; "" for an empty map.
func encodeMap[V any](m map[string]V) (string, error) {
	if len(m) == 0 {
		return "", nil
	}
	text, err := json.Marshal(m)
	return string(text), err
}

func decodeMap[V any](text string) (m map[string]V, err error) {
	if text == "" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &m)
	return m, err
}
