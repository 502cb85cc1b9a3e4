// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
)

// waiting returns later, held for ten minutes.
func waiting() reservation.Reservation {
	r := later()
	r.Created = early
	r.Events = []reservation.Event{{Type: reservation.ExpireEvent, Time: early + 600, State: reservation.EventDue}}
	return r
}

// Each change of a reservation is one that a held one refuses, apart from its confirmation, which may come with the change.
func TestAHeldReservationChangesOnlyWithItsConfirmation(t *testing.T) {
	v, r := spacious(t), waiting()
	eachChange(t, map[string]any{
		"Name": "s", "Quantity": 3, "Start": early + hour + 600, "End": early + 3*hour, "HostProperties": `["!=", "$name", "a"]`,
		"OnEnd": reservation.OnEndShelve, "BeforeEnd": 90, "Notice": 0, "Hold": 0,
	}, ofInstances, func(field string, c Change) {
		plan, err := PlanChange(v, r, c)
		if field == "Hold" {
			if err != nil || plan.HeldUntil != 0 {
				t.Errorf("the confirmation: held until %v, %v", plan.HeldUntil, err)
			}
			return
		}
		if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "confirm it before or with the change") {
			t.Errorf("a change of %s: %v", field, err)
		}
		c.Hold = new(int64)
		if plan, err := PlanChange(v, r, c); err != nil || plan.HeldUntil != 0 {
			t.Errorf("a change of %s with the confirmation: held until %v, %v", field, plan.HeldUntil, err)
		}
	})
	if plan, err := PlanChange(v, r, Change{Name: &r.Name}); err != nil || plan.HeldUntil != early+600 {
		t.Errorf("a change of nothing: held until %v, %v", plan.HeldUntil, err)
	}
}

// A reservation that belongs to no lease can be changed as one, and a lease can be moved within a window.
func TestAHeldReservationDoesNotChangeAsALease(t *testing.T) {
	v, r := spacious(t), waiting()
	v = v.with(&r)
	l := reservation.OwnLease(r)
	for name, c := range map[string]reservation.LeaseChange{
		"another name": {Name: new("s")}, "another end": {End: new(early + 4*hour)}, "a window": {Start: new(early + 2*hour), Deadline: new(early + 9*hour)},
	} {
		if _, _, err := PlanLeaseChange(v, l, c); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "confirm it before or with the change") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, members, err := PlanLeaseChange(v, l, reservation.LeaseChange{Name: &r.Name}); err != nil || members[0].HeldUntil() != early+600 {
		t.Errorf("as it is: %v", err)
	}
}

func TestAHoldNeitherBeginsLaterNorLasts(t *testing.T) {
	v := spacious(t)
	for _, r := range []reservation.Reservation{later(), waiting()} {
		if _, err := PlanChange(v, r, Change{Hold: new(int64(60))}); fault.Of(err) == nil || fault.Of(err).Field != "hold" {
			t.Errorf("a new hold of one that is held until %v: %v", r.HeldUntil(), err)
		}
	}
}

func TestOnlyAHoldThatIsOverExpires(t *testing.T) {
	for name, r := range map[string]reservation.Reservation{"one that is not held": later(), "one that lasts": waiting(), "one that failed": failed()} {
		if next, err := Expired(r, early+599); !fault.Is(err, fault.Conflict) || next.Version != r.Version {
			t.Errorf("%s: %v, version %d", name, err, next.Version)
		}
	}
	if next, err := Expired(waiting(), early+600); err != nil || next.Status != reservation.Canceled || len(next.Claims) > 0 || next.HeldUntil() != 0 {
		t.Errorf("one that is over: %s with %v, %v", next.Status, next.Claims, err)
	}
}

func failed() reservation.Reservation {
	r := waiting()
	r.Status = reservation.Failed
	return r
}

func TestMaintenanceIsNotHeld(t *testing.T) {
	v := spacious(t)
	v.Limits.Hold = 600
	_, err := NewPlan(v, reservation.Request{
		Terms: reservation.Terms{Name: "m", Quantity: 1, Maintenance: true}, Hosts: []string{"a"}, Start: early + hour, Duration: hour, Hold: 60,
	})
	if f := fault.Of(err); f == nil || f.Field != "hold" {
		t.Errorf("held maintenance: %v", err)
	}
}
