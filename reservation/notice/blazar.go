// SPDX-License-Identifier: Apache-2.0

package notice

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// leasePublisher is the default of Blazar's [notifications] publisher_id.
const leasePublisher = "blazar.lease"

// leaseEventTypes maps actions to Blazar's event types
// (blazar/manager/service.py, _send_notification and its callers). Other actions have no
// notification. Blazar heals without one; here healing sends an update with the lease's
// current flags.
var leaseEventTypes = map[reservation.Action]string{
	reservation.ActionCreate:    "lease.create",
	reservation.ActionModify:    "lease.update",
	reservation.ActionCancel:    "lease.delete",
	reservation.ActionStart:     "lease.event.start_lease",
	reservation.ActionWarnOfEnd: "lease.event.before_end_lease",
	reservation.ActionEnd:       "lease.event.end_lease",
	reservation.ActionHeal:      "lease.update",
	reservation.ActionDegrade:   "lease.update",
	reservation.ActionRestore:   "lease.update",
	reservation.ActionMove:      "lease.update",
	reservation.ActionExpire:    "lease.delete",
	reservation.ActionBook:      "lease.create",
}

// warningVoid is sent after an update if an owner who was warned of the end will be warned again.
const warningVoid = "lease.event.before_end_lease.stop"

// leaseEvents returns the notifications in Blazar's format. As in Blazar, all have
// priority info, even failures. Maintenance is no lease, nor is what waits for room, and they have none.
func leaseEvents(change reservation.Change) []event {
	eventType, told := leaseEventTypes[change.Action]
	if !told || change.Reservation.Maintenance || planning.NeverBooked(&change.Reservation) {
		return nil
	}
	r := &change.Reservation
	events := []event{{leasePublisher, eventType, oslo.Info, blazar.PayloadOf(r, change.At)}}
	warned := slices.ContainsFunc(r.Events, func(e reservation.Event) bool {
		return e.Type == reservation.BeforeEndEvent && e.State == reservation.EventDone
	})
	if e, ok := r.LastEvent(reservation.BeforeEndEvent); change.Action == reservation.ActionModify && warned && ok && e.State == reservation.EventDue {
		events = append(events, event{leasePublisher, warningVoid, oslo.Info, blazar.PayloadOf(r, change.At)})
	}
	return events
}
