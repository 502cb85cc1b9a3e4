// SPDX-License-Identifier: Apache-2.0

// Package v1 contains the JSON of the REST API, version 1, as Go types, which server and client
// share. It contains no rules.
package v1

import (
	"encoding/json"
	"time"
)

// ReservationRequest is the body of POST /v1/reservations. Absent fields have their defaults.
type ReservationRequest struct {
	Name           string          `json:"name,omitempty"`
	Kind           string          `json:"kind,omitempty"`
	HostProperties json.RawMessage `json:"host_properties,omitempty"`
	StartTime      *time.Time      `json:"start_time,omitempty"`
	EndTime        *time.Time      `json:"end_time,omitempty"`
	Duration       *Duration       `json:"duration,omitempty"`
	Quantity       *int            `json:"quantity,omitempty"`
	Policy         string          `json:"policy,omitempty"`
	Resources      *Resources      `json:"resources,omitempty"`
	Flavor         string          `json:"flavor,omitempty"`
	Affinity       string          `json:"affinity,omitempty"`
	Image          string          `json:"image,omitempty"`
	OnEnd          string          `json:"on_end,omitempty"`
	BeforeEnd      *Duration       `json:"before_end,omitempty"`
	Together       *TogetherWish   `json:"together,omitempty"`
	// Notice makes the reservation movable within its window until so long before its start.
	Notice *Duration `json:"notice,omitempty"`
	// Hold books the reservation only if its owner confirms it within so long.
	Hold *Duration `json:"hold,omitempty"`
	// WaitUntil is until when the reservation waits if there is no room for it now; without it, it is refused.
	WaitUntil *time.Time `json:"wait_until,omitempty"`
	// Maintenance plans work of operators on Hosts; all other requests name no hosts.
	Maintenance bool     `json:"maintenance,omitempty"`
	Hosts       []string `json:"hosts,omitempty"`
}

// TogetherWish is how the hosts of a reservation shall lie to each other, by the value of the property By on each of them. Without
// Required, the rules same and spread are required.
type TogetherWish struct {
	By       string `json:"by"`
	Rule     string `json:"rule,omitempty"`
	Values   int    `json:"values,omitempty"` // of rule spread
	Required *bool  `json:"required,omitempty"`
	// ApartFrom are the ids of reservations of the project on whose values of By the hosts shall not be. It needs no rule.
	ApartFrom []string `json:"apart_from,omitempty"`
	Kept      *bool    `json:"kept,omitempty"` // ignored: a rule can be sent as it was read
}

// Together is how the hosts of a reservation lie to each other; see TogetherWish.
type Together struct {
	By        string   `json:"by"`
	Rule      string   `json:"rule,omitempty"`
	Values    int      `json:"values,omitempty"`
	Required  bool     `json:"required"`
	ApartFrom []string `json:"apart_from,omitempty"`
	Kept      bool     `json:"kept"` // whether the hosts lie so
}

// Resources is the size of one instance, or the capacity of a host.
type Resources struct {
	VCPUs    int64            `json:"vcpus,omitempty"`
	MemoryMB int64            `json:"memory_mb,omitempty"`
	DiskGB   int64            `json:"disk_gb,omitempty"`
	Custom   map[string]int64 `json:"custom,omitempty"`
}

// ReservationChange is the body of PATCH /v1/reservations/{id}. Absent fields stay as they are.
type ReservationChange struct {
	Name      *string    `json:"name,omitempty"`
	Quantity  *int       `json:"quantity,omitempty"`
	StartTime *time.Time `json:"start_time,omitempty"`
	EndTime   *time.Time `json:"end_time,omitempty"`
	// HostProperties is a new filter; an empty string as JSON removes the filter.
	HostProperties json.RawMessage `json:"host_properties,omitempty"`
	OnEnd          *string         `json:"on_end,omitempty"`
	BeforeEnd      *Duration       `json:"before_end,omitempty"`
	// Resources is the whole new size of one instance: an absent amount is 0.
	Resources *Resources `json:"resources,omitempty"`
	Affinity  *string    `json:"affinity,omitempty"`
	// Notice is another notice of a movable reservation; 0 fixes its time.
	Notice *Duration `json:"notice,omitempty"`
	// Hold is 0, which confirms a reservation that is held.
	Hold *Duration `json:"hold,omitempty"`
}

// Reservation is a reservation as the caller may see it.
type Reservation struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	ProjectID string    `json:"project_id"`
	Kind      string    `json:"kind"`
	Status    string    `json:"status"`
	Start     time.Time `json:"start"`
	End       time.Time `json:"end"`
	Quantity  int       `json:"quantity"`
	Policy    string    `json:"policy"`
	// Hosts are the names of the hosts. The owner sees them once the reservation is active, an
	// admin always; otherwise it is empty.
	Hosts  []string `json:"hosts"`
	Events []Event  `json:"events"`

	PolicyReason string  `json:"policy_reason,omitempty"` // why Policy is not the one that was asked for
	UserID       string  `json:"user_id"`
	LeaseID      *string `json:"lease_id"` // the lease to which it belongs; nil if none
	// SeriesID is its series, and Occurrence its local time by the rule of the series; absent if it occurs once.
	SeriesID       string          `json:"series_id,omitempty"`
	Occurrence     string          `json:"occurrence,omitempty"`
	HostProperties json.RawMessage `json:"host_properties,omitempty"`
	Resources      *Resources      `json:"resources,omitempty"`
	Affinity       string          `json:"affinity,omitempty"`
	Together       *Together       `json:"together,omitempty"`
	Image          string          `json:"image,omitempty"`
	Images         []HostImage     `json:"images,omitempty"` // only in the answer to GET /v1/reservations/{id}
	OnEnd          string          `json:"on_end"`
	BeforeEnd      Duration        `json:"before_end"`
	DelayedByBoot  bool            `json:"delayed_by_boot"`
	// Notice, in seconds, is that of a movable reservation, and the window that of one that is movable or waits.
	Notice         Duration   `json:"notice,omitempty"`
	WindowStart    *time.Time `json:"window_start,omitempty"`
	WindowEnd      *time.Time `json:"window_end,omitempty"`
	HeldUntil      *time.Time `json:"held_until,omitempty"` // when the reservation expires unless its owner confirms it before
	Waiting        *Waiting   `json:"waiting,omitempty"`    // nil unless the status is waiting
	Maintenance    bool       `json:"maintenance"`          // operators work on the hosts; Name is the reason
	Degraded       bool       `json:"degraded"`
	DegradedReason string     `json:"degraded_reason,omitempty"`
	CreatedAt      time.Time  `json:"created_at"`
	UpdatedAt      time.Time  `json:"updated_at"`
}

// Waiting is what a reservation waits for: it has no hosts, and its time is the first that was asked for.
type Waiting struct {
	Until time.Time `json:"until"`
	// Place is its place among the reservations of all projects that wait, from 1 on, and Of is their number; both are 0 in notifications.
	Place int `json:"place,omitempty"`
	Of    int `json:"of,omitempty"`
	// NextStart is the first start after its window at which there is room now, in the answer to GET /v1/reservations/{id}; nil if none is known.
	NextStart *time.Time `json:"next_start,omitempty"`
	Hold      Duration   `json:"hold,omitempty"` // how long the owner then has to confirm it
}

// Event is an event of a reservation.
type Event struct {
	Type   string     `json:"type"`
	Time   time.Time  `json:"time"`
	State  string     `json:"state"`
	DoneAt *time.Time `json:"done_at,omitempty"`
	Detail string     `json:"detail,omitempty"`
}

// Reservations is one page of a list; Next is the marker of the next page.
type Reservations struct {
	Reservations []Reservation `json:"reservations"`
	Next         Marker        `json:"next"`
}

// Offer is what a booking would get now.
type Offer struct {
	Start         time.Time `json:"start"`
	End           time.Time `json:"end"`
	Quantity      int       `json:"quantity"`
	Kind          string    `json:"kind"`
	Policy        string    `json:"policy"`
	PolicyReason  string    `json:"policy_reason,omitempty"` // why Policy is not the one that was asked for
	Hosts         []string  `json:"hosts"`                   // for admins; otherwise empty
	Matched       int       `json:"matched"`
	DelayedByBoot bool      `json:"delayed_by_boot"`
	Together      *Together `json:"together,omitempty"`
	// HeldUntil is when the reservation would expire unless its owner confirms it before; nil if it would be booked at once.
	HeldUntil *time.Time `json:"held_until,omitempty"`
	// WaitUntil is until when the reservation would wait, since there is no room now; nil if there is room.
	WaitUntil *time.Time `json:"wait_until,omitempty"`
	// Servers are those on the hosts of maintenance that must be moved before its start, for callers
	// that may see the instances of hosts.
	Servers []HostServer `json:"servers,omitempty"`
}

// HostServer is a server on a host.
type HostServer struct {
	Host      string `json:"host"`
	ID        string `json:"id"`
	Name      string `json:"name"`
	ProjectID string `json:"project_id"`
	Status    string `json:"status"` // as Nova has it now
}

// OfferAnswer is the answer to a dry run.
type OfferAnswer struct {
	Offer Offer `json:"offer"`
}

// Cancellation is the predicted effect of the deletion of a reservation.
type Cancellation struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"`
	// Servers are those created in the reservation, wherever they are now.
	Servers []CanceledServer `json:"servers"`
}

// CanceledServer is a server of a reservation that is deleted.
type CanceledServer struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Status string `json:"status"` // as Nova has it now
	// Becomes is the effect of the deletion on the server: deleted, shelved, stopped or left.
	Becomes string `json:"becomes"`
}

// CancellationAnswer is the answer to the dry run of a deletion.
type CancellationAnswer struct {
	Cancellation Cancellation `json:"cancellation"`
}
