// SPDX-License-Identifier: Apache-2.0

// Package admission decides which reservation a request for hosts may use, and stores to which
// reservation its instances belong. Almanac uses it in every mode in which it answers Nova.
package admission

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// InstanceRecords stores for which reservation instances were placed, since Nova may not return
// that later.
type InstanceRecords interface {
	inventory.InstanceRecords
	SaveInstanceRecords(ctx context.Context, instances []string, g inventory.InstanceRecord, at span.Instant) error
}

// Admission admits requests.
type Admission struct {
	Promises filters.Reservation
	Records  InstanceRecords // nil stores nothing
	Rule     inventory.PreemptibleRule
	Pins     Pins // nil without best-effort requests
	Log      *slog.Logger
}

// Pins decides on which host a best-effort instance may be placed.
type Pins interface {
	// Pin returns the host for the VM that the request's hint names; empty means any. refusal is
	// the reason why it may not be placed, as a sentence for the tenant.
	Pin(ctx context.Context, vm, project string, instances []string) (host, refusal string, err error)
}

// Entry is the admission of a request.
type Entry struct {
	// Held is the reservation that the request names; nil means none.
	Held *reservation.Reservation
	// outlived is true if the instances were admitted to a reservation by their hint and the
	// reservation is over: Nova still sends the hint whenever they move.
	outlived bool
	// BestEffort is true if the request is for best-effort work; Host is the only host on which it
	// may be placed, empty means any.
	BestEffort bool
	Host       string
}

// memoryTimeout limits a read or write of the database.
const memoryTimeout = time.Second

// Resolve finds the reservation that the request names. refusal is the reason why the request may
// not use it, as a sentence for the tenant; "" if it may, or names none. If the hint names several
// reservations, Resolve leaves only that one in it. If the instances have outlived the reservation,
// it removes the hint from the request.
func (a Admission) Resolve(ctx context.Context, r *placing.Request, now span.Instant) (entry Entry, refusal string) {
	several := len(r.Hints[placing.ReservationHint]) > 1
	if several {
		a.keepPlace(ctx, r)
	}
	entry.Held, refusal = a.Promises.Resolve(r, now)
	if several && entry.Held != nil {
		r.Hints[placing.ReservationHint] = []string{entry.Held.ID}
	}
	if refusal != "" && a.outlived(ctx, r) {
		entry.outlived = true
		delete(r.Hints, placing.ReservationHint)
		entry.Held, refusal = a.Promises.Resolve(r, now)
	}
	if vm, hinted := r.Hints[placing.BestEffortHint]; hinted && refusal == "" {
		refusal = a.pin(ctx, r, vm, &entry)
	}
	return entry, refusal
}

// pin restricts a best-effort request to its planned host, and makes it preemptible whatever
// else it contains.
func (a Admission) pin(ctx context.Context, r *placing.Request, vm []string, entry *Entry) (refusal string) {
	if a.Pins == nil || len(vm) != 1 || entry.Held != nil {
		return "the hint " + placing.BestEffortHint + " is reserved for servers that Almanac creates"
	}
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	host, refusal, err := a.Pins.Pin(ctx, vm[0], r.ProjectID, r.Instances)
	if err != nil {
		a.Log.ErrorContext(ctx, "refusing a best-effort request: reading its planned host failed", "request_id", r.ID, "error", err)
		return "the planned host of the best-effort request cannot be read now; try again later"
	}
	if refusal != "" {
		return refusal
	}
	entry.BestEffort, entry.Host, r.Preemptible = true, host, true
	if host != "" {
		r.Host = host
	}
	return ""
}

// keepPlace leaves in the request's hint only the reservation in which its instances were placed
// before, if the hint names it.
func (a Admission) keepPlace(ctx context.Context, r *placing.Request) {
	hint, _ := r.HintedReservations()
	for _, before := range a.placed(ctx, r) {
		if slices.Contains(hint, before.Reservation) {
			r.Hints[placing.ReservationHint] = []string{before.Reservation}
			return
		}
	}
}

// outlived reports whether the instances were placed by the request's hint before and the
// reservations that it names are over.
func (a Admission) outlived(ctx context.Context, r *placing.Request) bool {
	hint, _ := r.HintedReservations()
	if len(hint) == 0 {
		return false
	}
	for _, id := range hint {
		if _, live := a.Promises.Promises.Reservation(id); live {
			return false
		}
	}
	return len(a.placed(ctx, r)) > 0
}

// placed returns the records of the request's instances, in their order. It returns none unless all
// of the instances were placed before.
func (a Admission) placed(ctx context.Context, r *placing.Request) []inventory.InstanceRecord {
	if a.Records == nil || len(r.Instances) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	known, err := a.Records.InstanceRecords(ctx, r.Instances...)
	if err != nil {
		a.Log.ErrorContext(ctx, "reading the stored reservation of instances failed", "request_id", r.ID, "error", err)
		return nil
	}
	list := make([]inventory.InstanceRecord, 0, len(r.Instances))
	for _, id := range r.Instances {
		record, placed := known[id]
		if !placed {
			return nil
		}
		list = append(list, record)
	}
	return list
}

// Remember stores what the instances' hints contain: their reservation, and that they are
// preemptible. It does so before the instances have a host, so that it can be read as soon as one
// appears on a host. Entries of instances that never get a host expire. refusal is the reason why
// the request cannot continue; "" if it can.
func (a Admission) Remember(ctx context.Context, r *placing.Request, entry Entry, now span.Instant) (refusal string) {
	byHint := inventory.PreemptibleRule{Hint: a.Rule.Hint}
	g := inventory.InstanceRecord{Preemptible: byHint.Marks(&inventory.Instance{Hints: r.Hints}) || entry.BestEffort}
	if _, hinted := r.Hints[placing.ReservationHint]; hinted && entry.Held != nil {
		g.Reservation = entry.Held.ID
	}
	if g == (inventory.InstanceRecord{}) && !entry.outlived || a.Records == nil || len(r.Instances) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	if err := a.Records.SaveInstanceRecords(ctx, r.Instances, g, now); err != nil {
		a.Log.ErrorContext(ctx, "refusing a request: storing the reservation of its instances failed", "request_id", r.ID, "error", err)
		return "the hints of the request cannot be stored now; try again later"
	}
	return ""
}
