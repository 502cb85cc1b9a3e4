// Package admission says which reservation a request for hosts may use, and remembers
// whose guests its instances become. Whoever answers Nova asks it, over whichever way
// Nova has come.
package admission

import (
	"context"
	"log/slog"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Guests remembers what instances were placed for, where Nova may not tell it again.
type Guests interface {
	inventory.Guests
	SaveGuests(ctx context.Context, instances []string, g inventory.Guest, at span.Instant) error
}

// Admission is what requests are admitted by.
type Admission struct {
	Promises filters.Reservation
	Guests   Guests // nil remembers nothing
	Rule     inventory.PreemptibleRule
	Log      *slog.Logger
}

// Entry is how a request is admitted.
type Entry struct {
	// Held is the reservation that the request names; nil is none.
	Held *reservation.Reservation
	// outlived says that the instances were in a reservation by their hint, which is over:
	// Nova goes on to send the hint whenever they are moved.
	outlived bool
}

// memoryTimeout is how long the database may take to tell or to remember something.
const memoryTimeout = time.Second

// Resolve finds the reservation that the request names. It gives why the request may not
// use it, in a sentence for the tenant; empty where it may, or names none. The hint of a
// reservation that its instances have outlived is taken out of the request.
func (a Admission) Resolve(ctx context.Context, r *placing.Request, now span.Instant) (entry Entry, refusal string) {
	entry.Held, refusal = a.Promises.Resolve(r, now)
	if refusal != "" && a.outlived(ctx, r) {
		entry.outlived = true
		delete(r.Hints, placing.ReservationHint)
		entry.Held, refusal = a.Promises.Resolve(r, now)
	}
	return entry, refusal
}

// outlived says that the instances were placed by the request's hint before, and that its
// reservation is over.
func (a Admission) outlived(ctx context.Context, r *placing.Request) bool {
	hint := r.Hints[placing.ReservationHint]
	if len(hint) != 1 || a.Guests == nil || len(r.Instances) == 0 {
		return false
	}
	if _, live := a.Promises.Promises.Reservation(hint[0]); live {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	known, err := a.Guests.Guests(ctx, r.Instances...)
	if err != nil {
		a.Log.ErrorContext(ctx, "what instances were for was not read", "request_id", r.ID, "error", err)
		return false
	}
	for _, id := range r.Instances {
		if _, placed := known[id]; !placed {
			return false
		}
	}
	return true
}

// Remember stores of the instances what their hints say: in which reservation they are,
// and that they may make room. That comes before they have a host, so that whoever sees
// one on a host can know whose guest it is; those that find none are forgotten in time.
// It gives why the request cannot go on; empty where it can.
func (a Admission) Remember(ctx context.Context, r *placing.Request, entry Entry, now span.Instant) (refusal string) {
	byHint := inventory.PreemptibleRule{Hint: a.Rule.Hint}
	g := inventory.Guest{Preemptible: byHint.Marks(&inventory.Instance{Hints: r.Hints})}
	if _, hinted := r.Hints[placing.ReservationHint]; hinted && entry.Held != nil {
		g.Reservation = entry.Held.ID
	}
	if g == (inventory.Guest{}) && !entry.outlived || a.Guests == nil || len(r.Instances) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	if err := a.Guests.SaveGuests(ctx, r.Instances, g, now); err != nil {
		a.Log.ErrorContext(ctx, "what instances are for was not stored, so they are not placed", "request_id", r.ID, "error", err)
		return "what the hints of the request are for cannot be stored now; try again later"
	}
	return ""
}
