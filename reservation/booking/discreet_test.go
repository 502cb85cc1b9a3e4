// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// An admin may write anything as the reason for disabling a host.
func TestOnlyTheAuditTrailHasWhyAHostFailed(t *testing.T) {
	const secret = "it is disabled: the police took the disks"
	for name, now := range map[string]int64{"pending": 50, "active": 150} {
		t.Run(name, func(t *testing.T) {
			causes := &causes{}
			s := newScene(t, named("a", "b", "c"), causes.keep)
			id := s.book(t, during(2, 100, 200)).ID
			s.passTo(t, at(now))
			r := s.heal(t, id, func(host string) (string, bool) { return secret, host != "c" }, true)
			if text := strings.Join(told(r), " ") + r.Degraded; strings.Contains(text, "police") || r.Degraded == "" || len(told(r)) != 2 {
				t.Errorf("the owner reads %s", text)
			}
			last := causes.list[len(causes.list)-1]
			if strings.Count(last.Detail, secret) != 2 {
				t.Errorf("the audit trail has %+v", last)
			}
		})
	}
}

// failingCloud fails at every event.
type failingCloud struct{ why error }

func (c failingCloud) Carry(context.Context, reservation.Reservation, reservation.EventType) error {
	return c.why
}

func TestTheCauseOfWhatIsPutOffIsForTheAuditTrail(t *testing.T) {
	why := &fault.Error{Kind: fault.Unavailable, Message: "a host is still in use", Err: errors.New("instance 7 is on host-1")}
	causes := &causes{}
	s := newScene(t, named("a"), causes.keep, func(o *booking.Options) { o.Cloud, o.Replica = failingCloud{why}, "one" })
	id := s.book(t, during(1, 100, 200)).ID
	s.let(t, 100, 100)
	if start := s.get(t, id).Events[1]; start.Detail != "a host is still in use" {
		t.Errorf("the owner reads %+v", start)
	}
	want := reservation.Cause{Action: reservation.ActionPutOff, Detail: "a host is still in use: instance 7 is on host-1"}
	if last := causes.list[len(causes.list)-1]; last != want {
		t.Errorf("the audit trail has %+v, want %+v", last, want)
	}
}
