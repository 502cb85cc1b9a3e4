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
	Pins     Pins // nil where there is no best-effort work
	Log      *slog.Logger
}

// Pins know on which host a server may be placed that is to be of best-effort work.
type Pins interface {
	// Pin gives the host, by the VM that the request's hint names; empty is any. refusal
	// says why it may be placed on none, in a sentence for the tenant.
	Pin(ctx context.Context, vm, project string, instances []string) (host, refusal string, err error)
}

// Entry is how a request is admitted.
type Entry struct {
	// Held is the reservation that the request names; nil is none.
	Held *reservation.Reservation
	// outlived says that the instances were in a reservation by their hint, which is over:
	// Nova goes on to send the hint whenever they are moved.
	outlived bool
	// BestEffort says that the request is of best-effort work, and Host on which host alone
	// it may be placed; empty is any.
	BestEffort bool
	Host       string
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
	if vm, hinted := r.Hints[placing.BestEffortHint]; hinted && refusal == "" {
		refusal = a.pin(ctx, r, vm, &entry)
	}
	return entry, refusal
}

// pin keeps a request of best-effort work to the host that is planned for it. It makes
// room for others, whatever else it says.
func (a Admission) pin(ctx context.Context, r *placing.Request, vm []string, entry *Entry) (refusal string) {
	if a.Pins == nil || len(vm) != 1 || entry.Held != nil {
		return "the hint " + placing.BestEffortHint + " is for servers that Almanac makes"
	}
	ctx, cancel := context.WithTimeout(ctx, memoryTimeout)
	defer cancel()
	host, refusal, err := a.Pins.Pin(ctx, vm[0], r.ProjectID, r.Instances)
	if err != nil {
		a.Log.ErrorContext(ctx, "where best-effort work may be placed was not read, so it is not placed", "request_id", r.ID, "error", err)
		return "it cannot be read now where best-effort work may be placed; try again later"
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

// outlived says that the instances were placed by the request's hint before, and that its
// reservation is over.
func (a Admission) outlived(ctx context.Context, r *placing.Request) bool {
	hint, _ := r.HintedReservations()
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
	g := inventory.Guest{Preemptible: byHint.Marks(&inventory.Instance{Hints: r.Hints}) || entry.BestEffort}
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
