// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
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

// Remark adds a sentence about the image to the log of a reservation that has not started. It
// changes nothing else. changed is false if the newest such sentence is the same, or if the
// reservation has started or is over.
func (d *Service) Remark(ctx context.Context, id, sentence string) (changed bool, err error) {
	_, err = d.modify(ctx, Caller{Admin: true}, id, "store the remark about the image", func(v View, r reservation.Reservation) (reservation.Reservation, reservation.Cause, error) {
		next := r
		if r.Status == reservation.Pending && r.LastRemark() != sentence {
			next.Events = recent(append(slices.Clone(r.Events), happened(reservation.ImageEvent, v.Now, sentence)))
			next.Updated, next.Version = v.Now, r.Version+1
		}
		changed = next.Version != r.Version
		return next, reservation.Cause{Action: reservation.ActionRemark, Detail: sentence}, nil
	})
	if fault.Is(err, fault.NotFound) || fault.Is(err, fault.Conflict) { // it is over
		return false, nil
	}
	return changed && err == nil, err
}
