package booking

import (
	"fmt"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Hold is a part of a host that is promised already.
type Hold struct {
	Host      string
	Span      span.Span
	Resources resource.Vector
}

// NewView gives a view for one decision without a desk: on the hosts of s, with what is
// held, without limits, and with defaults that decide nothing. The error says which of the
// holds has no room beside those before it.
func NewView(now span.Instant, s *inventory.Snapshot, held []Hold) (View, error) {
	r, capacities := (&roster{}).with(lineUp(s))
	v := View{
		Now: now, Calendar: calendar.New(capacities, now), roster: r,
		Defaults: Defaults{Policy: calendar.PolicyFirstFit, OnEnd: reservation.Delete},
	}
	for i, h := range held {
		number, known := r.numbers[h.Host]
		if !known {
			return View{}, &HoldError{Index: i, Err: fmt.Errorf("there is no host %q", h.Host)}
		}
		if err := v.Calendar.Add(calendar.Claim{Host: number, Span: h.Span, Slice: h.Resources}); err != nil {
			return View{}, &HoldError{Index: i, Err: err}
		}
	}
	return v, nil
}

// HoldError says that a hold cannot be entered.
type HoldError struct {
	Index int
	Err   error
}

func (e *HoldError) Error() string { return fmt.Sprintf("enter hold %d: %v", e.Index, e.Err) }
func (e *HoldError) Unwrap() error { return e.Err }
