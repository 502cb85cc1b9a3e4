// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// bounded lists the groups of events that may happen any number of times: an owner may change a
// reservation often, and a host may fail and return often. The log of a reservation keeps the last
// entries of each group; the audit trail keeps every change.
var bounded = []struct {
	types []reservation.EventType
	most  int
}{
	{[]reservation.EventType{reservation.ChangedEvent}, 20},
	{[]reservation.EventType{reservation.HealedEvent, reservation.DegradedEvent, reservation.RestoredEvent}, 20},
	{[]reservation.EventType{reservation.MovedEvent}, 20},
	{[]reservation.EventType{reservation.ImageEvent}, 20},
	{[]reservation.EventType{reservation.BeforeEndEvent}, 20},
}

// recent returns the log without the oldest entries of each group that has too many. Events that
// have not happened yet stay. recent may change log.
func recent(log []reservation.Event) []reservation.Event {
	for _, group := range bounded {
		happened := func(e reservation.Event) bool {
			return e.State == reservation.EventDone && slices.Contains(group.types, e.Type)
		}
		extra := -group.most
		for _, e := range log {
			if happened(e) {
				extra++
			}
		}
		log = slices.DeleteFunc(log, func(e reservation.Event) bool {
			if extra <= 0 || !happened(e) {
				return false
			}
			extra--
			return true
		})
	}
	return log
}

// Happened returns an event that is already done.
func Happened(t reservation.EventType, at span.Instant, detail string) reservation.Event {
	return reservation.Event{Type: t, Time: at, State: reservation.EventDone, Done: at, Detail: detail}
}

// Remarked returns a reservation that has not started with a sentence about its image in the log, unless
// the newest such sentence is the same.
func Remarked(r reservation.Reservation, sentence string, now span.Instant) reservation.Reservation {
	if r.Status == reservation.Pending && r.LastRemark() != sentence {
		r.Events = recent(append(slices.Clone(r.Events), Happened(reservation.ImageEvent, now, sentence)))
		r.Updated, r.Version = now, r.Version+1
	}
	return r
}
