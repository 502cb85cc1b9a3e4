package booking

import (
	"fmt"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Hold is a part of a host that is already promised.
type Hold struct {
	Host      string
	Span      span.Span
	Resources resource.Vector
}

// NewView returns a view for one decision without a service: with the hosts of s, the holds, no
// limits, and neutral defaults. It returns a *HoldError if a hold does not fit beside those
// before it.
func NewView(now span.Instant, s *inventory.Snapshot, held []Hold) (View, error) {
	r, capacities := (&hostIndex{}).with(orderHosts(s))
	v := View{
		Now: now, Calendar: calendar.New(capacities, now), hosts: r,
		Defaults: Defaults{Policy: calendar.PolicyFirstFit, OnEnd: reservation.OnEndDelete},
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

// HoldError is the error for a hold that cannot be added.
type HoldError struct {
	Index int
	Err   error
}

func (e *HoldError) Error() string { return fmt.Sprintf("add hold %d: %v", e.Index, e.Err) }
func (e *HoldError) Unwrap() error { return e.Err }
