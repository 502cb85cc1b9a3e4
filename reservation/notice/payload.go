// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"time"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/reservation"
)

// eventTypes maps actions to Almanac's event types. Other actions have no notification.
var eventTypes = map[reservation.Action]string{
	reservation.ActionCreate:    "reservation.create",
	reservation.ActionModify:    "reservation.change",
	reservation.ActionCancel:    "reservation.cancel",
	reservation.ActionStart:     "reservation.start",
	reservation.ActionWarnOfEnd: "reservation.before_end",
	reservation.ActionEnd:       "reservation.end",
	reservation.ActionHeal:      "reservation.heal",
	reservation.ActionDegrade:   "reservation.degrade",
	reservation.ActionRestore:   "reservation.restore",
	reservation.ActionMove:      "reservation.move",
	reservation.ActionBook:      "reservation.book",
	reservation.ActionExpire:    "reservation.expire",

	reservation.ActionRemark: "reservation.image",
}

// The versions of Almanac's payloads, of a reservation and of everything else: the first number grows
// when a field is removed or changes its meaning, the second when one is added.
const (
	reservationVersion = "1.7"
	payloadVersion     = "1.0"
)

// payload is the payload of Almanac's format: the reservation as REST shows it to an
// admin, and more.
type payload struct {
	Version string `json:"version"`
	v1.Reservation
	// ReservationVersion increases by one with every stored change, sent or not.
	ReservationVersion int64   `json:"reservation_version"`
	Claims             []claim `json:"claims"`
	// Detail describes the difference; it may be empty.
	Detail string `json:"detail"`
	// RequestID identifies the request that caused the change; empty if none did.
	RequestID string `json:"request_id"`
}

// claim is one host, or room for Instances instances on it, from start to end.
type claim struct {
	Host      string    `json:"host"`
	Start     time.Time `json:"start"`
	End       time.Time `json:"end"`
	Instances int       `json:"instances,omitempty"`
}

// ours returns the notification in Almanac's format; none if the action has none.
func ours(change reservation.Change, host string) []event {
	eventType, told := eventTypes[change.Action]
	if !told {
		return nil
	}
	priority := oslo.Info
	if change.Reservation.Status == reservation.Failed {
		priority = oslo.Error
	}
	return []event{{"almanac." + host, eventType, priority, payloadOf(change)}}
}

// payloadOf returns the payload of a change with all that an admin may see.
func payloadOf(change reservation.Change) payload {
	r := &change.Reservation
	claims := make([]claim, len(r.Claims))
	for i, c := range r.Claims {
		claims[i] = claim{c.Host, c.Span.Start.Time(), c.Span.End.Time(), c.Slices}
	}
	return payload{reservationVersion, v1.Of(r), r.Version, claims, change.Detail, change.RequestID}
}
