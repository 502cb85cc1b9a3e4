// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"time"
)

// GroupRequest is the body of POST /v1/groups. Absent fields have the defaults of a ReservationRequest.
type GroupRequest struct {
	Name      string      `json:"name,omitempty"`
	StartTime *time.Time  `json:"start_time,omitempty"`
	EndTime   *time.Time  `json:"end_time,omitempty"`
	Duration  *Duration   `json:"duration,omitempty"`
	OnEnd     string      `json:"on_end,omitempty"`
	BeforeEnd *Duration   `json:"before_end,omitempty"`
	Parts     []GroupPart `json:"parts,omitempty"`
}

// GroupPart is what to reserve in one reservation of a group; see ReservationRequest.
type GroupPart struct {
	Kind string `json:"kind,omitempty"`
	// Quantity is one number, or a range: as many as there is room for, and at least its Min.
	Quantity       *QuantityRange  `json:"quantity,omitempty"`
	HostProperties json.RawMessage `json:"host_properties,omitempty"`
	Resources      *Resources      `json:"resources,omitempty"`
	Affinity       string          `json:"affinity,omitempty"`
	Image          string          `json:"image,omitempty"`
}

// GroupChange is the body of PATCH /v1/groups/{id}. Absent fields stay as they are.
type GroupChange struct {
	Name      *string    `json:"name,omitempty"`
	StartTime *time.Time `json:"start_time,omitempty"`
	EndTime   *time.Time `json:"end_time,omitempty"`
	OnEnd     *string    `json:"on_end,omitempty"`
	BeforeEnd *Duration  `json:"before_end,omitempty"`
}

// Group is several reservations with the same times, as the caller may see them. In Blazar's form it is a lease.
type Group struct {
	ID           string        `json:"id"`
	Name         string        `json:"name"`
	ProjectID    string        `json:"project_id"`
	UserID       string        `json:"user_id"`
	Start        time.Time     `json:"start"`
	End          time.Time     `json:"end"`
	CreatedAt    time.Time     `json:"created_at"`
	UpdatedAt    time.Time     `json:"updated_at"`
	Reservations []Reservation `json:"reservations"` // in the order of the request
}

// Groups is one page of a list, sorted by start, then id; Next is the marker of the next page.
type Groups struct {
	Groups []Group `json:"groups"`
	Next   Marker  `json:"next"`
}

// GroupOffer is what a booking or a change of a group would get now.
type GroupOffer struct {
	Start         time.Time   `json:"start"`
	End           time.Time   `json:"end"`
	DelayedByBoot bool        `json:"delayed_by_boot"`
	Parts         []PartOffer `json:"parts"` // in the order of the reservations
}

// PartOffer is what one reservation of a group would have.
type PartOffer struct {
	Kind     string   `json:"kind"`
	Quantity int      `json:"quantity"`
	Hosts    []string `json:"hosts"` // for admins; otherwise empty
}

// GroupOfferAnswer is the answer to a dry run.
type GroupOfferAnswer struct {
	Offer GroupOffer `json:"offer"`
}

// GroupCancellation is the predicted effect of the deletion of a group, for each reservation that is not over.
type GroupCancellation struct {
	Reservations []Cancellation `json:"reservations"`
}
