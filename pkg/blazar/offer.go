// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"slices"

	"github.com/almanac-cloud/almanac/reservation"
)

// Offer is a lease that was not booked: what a request would get.
type Offer struct {
	StartDate    string               `json:"start_date"`
	EndDate      string               `json:"end_date"`
	Reservations []OfferedReservation `json:"reservations"`
}

// OfferedReservation is one reservation of an offer.
type OfferedReservation struct {
	ID           string   `json:"id,omitempty"` // empty if it does not exist yet
	ResourceType string   `json:"resource_type"`
	Quantity     int      `json:"quantity"` // 0 if the change ends the reservation before it began
	Hosts        []string `json:"hosts"`    // sorted
}

// OfferOf returns a lease as an offer. exists reports whether its reservations have their ids
// already; sees reports whether the caller may see the hosts of a reservation.
func OfferOf(l *reservation.LeaseRecord, exists bool, sees func(r *reservation.Reservation) bool) Offer {
	out := Offer{StartDate: Time(l.Span.Start), EndDate: Time(l.Span.End), Reservations: make([]OfferedReservation, len(l.Reservations))}
	for i := range l.Reservations {
		r := &l.Reservations[i]
		offered := OfferedReservation{ResourceType: resourceType(r), Quantity: r.Quantity, Hosts: []string{}}
		if exists {
			offered.ID = r.ID
		}
		if r.Status == reservation.Canceled {
			offered.Quantity = 0
		}
		if sees(r) {
			offered.Hosts = append(offered.Hosts, r.HostNames()...)
			slices.Sort(offered.Hosts)
		}
		out.Reservations[i] = offered
	}
	return out
}
