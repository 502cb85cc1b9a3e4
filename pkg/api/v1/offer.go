// SPDX-License-Identifier: Apache-2.0

package v1

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/resource"
)

// OffersRequest is the body of POST /v1/offers. Absent fields have their defaults.
type OffersRequest struct {
	Name         string             `json:"name,omitempty"`
	Quantity     *QuantityRange     `json:"quantity,omitempty"`
	Duration     *DurationRange     `json:"duration,omitempty"`
	Windows      []OfferWindow      `json:"windows,omitempty"`
	Alternatives []OfferAlternative `json:"alternatives,omitempty"` // the preferred one first
}

// OfferWindow is a time in which the reservation may be.
type OfferWindow struct {
	Start *time.Time `json:"start,omitempty"`
	End   *time.Time `json:"end,omitempty"`
}

// OfferAlternative is what to reserve; see ReservationRequest.
type OfferAlternative struct {
	Kind           string          `json:"kind,omitempty"`
	HostProperties json.RawMessage `json:"host_properties,omitempty"`
	Resources      *Resources      `json:"resources,omitempty"`
	Affinity       string          `json:"affinity,omitempty"`
	Together       *TogetherWish   `json:"together,omitempty"`
}

// QuantityRange is the quantities from Min to Max, both included. In JSON it is an object, or a number if they are equal.
type QuantityRange struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// UnmarshalJSON reads an object or a number.
func (r *QuantityRange) UnmarshalJSON(raw []byte) error {
	if readRange(raw, &r.Min, &r.Max) != nil {
		return fmt.Errorf(`must be a whole number, or an object such as {"min": 2, "max": 8}, not %.60s`, raw)
	}
	return nil
}

// DurationRange is the durations from Min to Max, both included. In JSON it is an object, or a Duration if they are equal.
type DurationRange struct {
	Min Duration `json:"min"`
	Max Duration `json:"max"`
}

// UnmarshalJSON reads an object or a Duration.
func (r *DurationRange) UnmarshalJSON(raw []byte) error {
	if readRange(raw, &r.Min, &r.Max) != nil {
		return fmt.Errorf(`must be whole seconds or a string such as "2h30m", or an object such as {"min": "2h", "max": "8h"}, not %.60s`, raw)
	}
	return nil
}

// readRange reads an object with both ends of a range, or one value for both.
func readRange[N any](raw []byte, least, most *N) error {
	var both struct{ Min, Max *json.RawMessage }
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	first, last := json.RawMessage(raw), json.RawMessage(raw)
	if decoder.Decode(&both) == nil && both.Min != nil && both.Max != nil {
		first, last = *both.Min, *both.Max
	}
	if err := json.Unmarshal([]byte(resource.Whole(string(first))), least); err != nil {
		return err
	}
	return json.Unmarshal([]byte(resource.Whole(string(last))), most)
}

// Offers is the answer to POST /v1/offers.
type Offers struct {
	Offers []RankedOffer `json:"offers"`
	// Complete is false if the search ended before it had tried everything, so that better offers may exist.
	Complete bool `json:"complete"`
	// MaxHold is how long an offer can be held at most; 0 if nothing can be held.
	MaxHold           Duration `json:"max_hold"`
	UnknownProperties []string `json:"unknown_properties,omitempty"`
}

// RankedOffer is one of several offers, the best first.
type RankedOffer struct {
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"`
	Quantity    int       `json:"quantity"`
	Alternative int       `json:"alternative"` // index in the request
	Kind        string    `json:"kind"`
	Hosts       []string  `json:"hosts"` // for admins; otherwise empty
	Matched     int       `json:"matched"`
	Together    *Together `json:"together,omitempty"`
	GivesUp     GivesUp   `json:"gives_up"`
	// Request is the body for POST /v1/reservations that books the offer.
	Request ReservationRequest `json:"request"`
}

// GivesUp is what an offer has less than all that was asked for.
type GivesUp struct {
	Quantity     int      `json:"quantity"`     // how many fewer
	Duration     Duration `json:"duration"`     // how much shorter
	Wait         Duration `json:"wait"`         // how much later than the soonest of the offers
	Alternatives int      `json:"alternatives"` // how many that are preferred to its own
	Together     bool     `json:"together"`     // whether its hosts do not lie as a preferred rule asks
	Text         string   `json:"text"`         // all of these in words; empty if it has all
}
