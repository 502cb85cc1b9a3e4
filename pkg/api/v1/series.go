// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"encoding/json"
	"time"
)

// SeriesRequest is the body of POST /v1/series. Absent fields have the defaults of a ReservationRequest.
type SeriesRequest struct {
	Name           string          `json:"name,omitempty"`
	Kind           string          `json:"kind,omitempty"`
	HostProperties json.RawMessage `json:"host_properties,omitempty"`
	Quantity       *int            `json:"quantity,omitempty"`
	Resources      *Resources      `json:"resources,omitempty"`
	Affinity       string          `json:"affinity,omitempty"`
	OnEnd          string          `json:"on_end,omitempty"`
	BeforeEnd      *Duration       `json:"before_end,omitempty"`
	Together       *TogetherWish   `json:"together,omitempty"`
	// Rule is an RRULE of RFC 5545, such as FREQ=WEEKLY;BYDAY=MO,WE;UNTIL=20270331.
	Rule string `json:"rule"`
	// TimeZone is an IANA name, such as Europe/Paris, and LocalStart the local time there at which the first occurrence begins,
	// 2026-12-01T09:00.
	TimeZone   string `json:"time_zone"`
	LocalStart string `json:"local_start"`
	// Duration is how long each occurrence lasts.
	Duration Duration `json:"duration"`
	// Except are local times or dates without an occurrence, and Also more local times with one.
	Except []string `json:"except,omitempty"`
	Also   []string `json:"also,omitempty"`
	// SkipRefused books the occurrences for which there is room; otherwise all are booked or none.
	SkipRefused bool `json:"skip_refused,omitempty"`
}

// SeriesChange is the body of PATCH /v1/series/{id}. Absent fields stay as they are.
type SeriesChange struct {
	Name           *string         `json:"name,omitempty"`
	Quantity       *int            `json:"quantity,omitempty"`
	HostProperties json.RawMessage `json:"host_properties,omitempty"`
	OnEnd          *string         `json:"on_end,omitempty"`
	BeforeEnd      *Duration       `json:"before_end,omitempty"`
	Resources      *Resources      `json:"resources,omitempty"`
	Affinity       *string         `json:"affinity,omitempty"`
	// TimeOfDay is when each occurrence begins on its day, 09:30, and Duration how long it lasts.
	TimeOfDay *string   `json:"time_of_day,omitempty"`
	Duration  *Duration `json:"duration,omitempty"`
}

// Series is a reservation that recurs, as it was booked.
type Series struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	ProjectID string `json:"project_id"`
	UserID    string `json:"user_id"`
	// Rule to Also are those of the SeriesRequest.
	Rule       string    `json:"rule"`
	TimeZone   string    `json:"time_zone"`
	LocalStart string    `json:"local_start"`
	Duration   Duration  `json:"duration"`
	Except     []string  `json:"except,omitempty"`
	Also       []string  `json:"also,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	// Left is how many of its reservations are neither over nor canceled.
	Left int `json:"left"`
	// Occurrences are those of the rule and what became of them, by their local times; absent in lists.
	Occurrences []Occurrence `json:"occurrences,omitempty"`
	// Refused are those that were skipped; only in the answer to POST.
	Refused []RefusedOccurrence `json:"refused,omitempty"`
}

// Occurrence is an occurrence of a series.
type Occurrence struct {
	// Local is its local time by the rule, which identifies it.
	Local string `json:"local"`
	// Start and End are those of its reservation; by the rule if it has none.
	Start time.Time `json:"start"`
	End   time.Time `json:"end"`
	// ReservationID and Status are those of its reservation; absent if it has none, since it was skipped or is long over.
	ReservationID string `json:"reservation_id,omitempty"`
	Status        string `json:"status,omitempty"`
	Quantity      int    `json:"quantity,omitempty"`
}

// RefusedOccurrence is an occurrence for which there is no room.
type RefusedOccurrence struct {
	Local      string    `json:"local"`
	Start      time.Time `json:"start"`
	Constraint string    `json:"constraint"`
	Message    string    `json:"message"`
}

// SeriesList is one page of a list, the latest series first; Next is the marker of the next page.
type SeriesList struct {
	Series []Series `json:"series"`
	Next   Marker   `json:"next"`
}

// SeriesOffer is what a booking or a change of a series would get now.
type SeriesOffer struct {
	Occurrences []OccurrenceOffer   `json:"occurrences"`
	Refused     []RefusedOccurrence `json:"refused"` // those that would be skipped
}

// OccurrenceOffer is what one occurrence of a series would have.
type OccurrenceOffer struct {
	Local    string    `json:"local"`
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Quantity int       `json:"quantity"`
	Hosts    []string  `json:"hosts"` // for admins; otherwise empty
}

// SeriesOfferAnswer is the answer to a dry run.
type SeriesOfferAnswer struct {
	Offer SeriesOffer `json:"offer"`
}

// SeriesCancellation is the predicted effect of the deletion of a series, for each reservation that would be canceled.
type SeriesCancellation struct {
	Reservations []Cancellation `json:"reservations"`
}
