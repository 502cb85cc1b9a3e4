// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// A decision needs no service: hosts, what is promised, now and a request are enough.
func ExampleNewPlan() {
	now := span.At(time.Date(2027, 3, 1, 8, 0, 0, 0, time.UTC))
	hosts, err := inventory.NewSnapshot([]inventory.Host{{Name: "gpu-1", Reservable: true}, {Name: "gpu-2", Reservable: true}}, nil, nil)
	if err != nil {
		log.Fatal(err)
	}
	view, err := planning.NewView(now, hosts, []planning.Hold{{Host: "gpu-1", Span: span.New(now, 2*3600)}})
	if err != nil {
		log.Fatal(err)
	}
	// One host for an hour, at once.
	plan, err := planning.NewPlan(view, reservation.Request{Terms: reservation.Terms{Name: "one", Quantity: 1}, Duration: 3600})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(plan.Claims[0].Host, "from", plan.Span.Start)
	// Two hosts within the next hour.
	_, err = planning.NewPlan(view, reservation.Request{Terms: reservation.Terms{Name: "two", Quantity: 2}, Duration: 3600, End: now.Add(3600)})
	if refusal, refused := errors.AsType[*reservation.Refusal](err); refused {
		fmt.Println(refusal.Constraint, "- free:", refusal.Free, "- earliest start:", refusal.EarliestStart)
	}
	// Output:
	// gpu-2 from 2027-03-01T08:00:00Z
	// free_hosts - free: 1 - earliest start: 2027-03-01T10:00:00Z
}
