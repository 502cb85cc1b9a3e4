// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/lifecycle"
)

// The table is complete: every pair that it lacks must be refused as a conflict.
func TestEveryStateAndTriggerIsDecided(t *testing.T) {
	want := map[reservation.Status]map[lifecycle.Trigger]reservation.Status{
		"waiting":  {"book": "pending", "cancel": "canceled"},
		"pending":  {"start": "starting", "fail": "failed", "cancel": "canceled"},
		"starting": {"start": "starting", "started": "active", "fail": "failed", "cancel": "canceled"},
		"active":   {"before_end": "active", "end": "ending", "fail": "failed", "cancel": "canceled"},
		"ending":   {"end": "ending", "finished": "ended", "fail": "failed"},
	}
	for _, s := range reservation.Statuses {
		for _, trigger := range lifecycle.Triggers {
			got, err := lifecycle.Next(s, trigger)
			next, allowed := want[s][trigger]
			switch {
			case allowed && (err != nil || got != next):
				t.Errorf("%s + %s = %s, %v; want %s", s, trigger, got, err, next)
			case !allowed && (!fault.Is(err, fault.Conflict) || got != s):
				t.Errorf("%s + %s = %s, %v; want a conflict and no change", s, trigger, got, err)
			}
		}
	}
}

func TestNothingFollowsAStateThatIsOver(t *testing.T) {
	for _, s := range reservation.Statuses {
		for _, trigger := range lifecycle.Triggers {
			if _, err := lifecycle.Next(s, trigger); err == nil && !s.Live() {
				t.Errorf("%s is over, but accepts %s", s, trigger)
			}
		}
	}
}

func booked(start, end span.Instant, beforeEnd int64) *reservation.Reservation {
	r := &reservation.Reservation{Status: reservation.Pending, Span: span.Span{Start: start, End: end}}
	r.BeforeEnd = beforeEnd
	return r
}

func TestAWarningThatWouldNotBeAfterTheStartIsLeftOut(t *testing.T) {
	for name, tc := range map[string]struct {
		beforeEnd int64
		want      []reservation.Event
	}{
		"within":     {30, []reservation.Event{{Type: "start", Time: 100, State: "pending"}, {Type: "before_end", Time: 170, State: "pending"}, {Type: "end", Time: 200, State: "pending"}}},
		"just after": {99, []reservation.Event{{Type: "start", Time: 100, State: "pending"}, {Type: "before_end", Time: 101, State: "pending"}, {Type: "end", Time: 200, State: "pending"}}},
		"as long":    {100, []reservation.Event{{Type: "start", Time: 100, State: "pending"}, {Type: "end", Time: 200, State: "pending"}}},
		"longer":     {1000, []reservation.Event{{Type: "start", Time: 100, State: "pending"}, {Type: "end", Time: 200, State: "pending"}}},
		"not wanted": {0, []reservation.Event{{Type: "start", Time: 100, State: "pending"}, {Type: "end", Time: 200, State: "pending"}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, lifecycle.Schedule(booked(100, 200, tc.beforeEnd))); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnExtensionWarnsAgain(t *testing.T) {
	r := booked(100, 200, 30)
	r.Status = reservation.Active
	r.Events = []reservation.Event{
		{Type: "start", Time: 100, State: "done"},
		{Type: "before_end", Time: 170, State: "done"},
		{Type: "end", Time: 200, State: "pending"},
	}
	r.Span.End = 300
	want := []reservation.Event{
		{Type: "start", Time: 100, State: "done"},
		{Type: "before_end", Time: 170, State: "done"},
		{Type: "before_end", Time: 270, State: "pending"},
		{Type: "end", Time: 300, State: "pending"},
	}
	if diff := cmp.Diff(want, lifecycle.Schedule(r)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	r.Span.End = 190 // a shorter span; the warning was already sent
	if got := lifecycle.Schedule(r); len(got) != 3 {
		t.Errorf("events after shortening: %v", got)
	}
}

func TestDueEventsComeInTheOrderOfTheirTimes(t *testing.T) {
	r := booked(100, 200, 50)
	r.Events = lifecycle.Schedule(r)
	var order []reservation.EventType
	for {
		i, ok := lifecycle.Due(r)
		if !ok {
			break
		}
		order = append(order, r.Events[i].Type)
		status, err := lifecycle.Begin(r.Status, r.Events[i].Type)
		if err == nil {
			status, err = lifecycle.Finish(status, r.Events[i].Type)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Status, r.Events[i].State = status, reservation.EventDone
	}
	if diff := cmp.Diff([]reservation.EventType{"start", "before_end", "end"}, order); diff != "" || r.Status != reservation.Ended {
		t.Errorf("order (-want +got), ending %s:\n%s", r.Status, diff)
	}
}

func TestAnEventThatHasBegunMayBeBegunAnew(t *testing.T) {
	for event, states := range map[reservation.EventType][3]reservation.Status{
		reservation.StartEvent:     {reservation.Pending, reservation.Starting, reservation.Active},
		reservation.BeforeEndEvent: {reservation.Active, reservation.Active, reservation.Active},
		reservation.EndEvent:       {reservation.Active, reservation.Ending, reservation.Ended},
	} {
		for _, from := range states[:2] {
			if got, err := lifecycle.Begin(from, event); err != nil || got != states[1] {
				t.Errorf("%s begins from %s: %s, %v; want %s", event, from, got, err, states[1])
			}
		}
		if got, err := lifecycle.Finish(states[1], event); err != nil || got != states[2] {
			t.Errorf("%s finished: %s, %v; want %s", event, got, err, states[2])
		}
	}
}

func TestAnEventIsToBeCarriedOutAtItsTimeOrWhenItWasPutOffTo(t *testing.T) {
	for name, tc := range map[string]struct {
		event reservation.Event
		at    span.Instant
		due   bool
	}{
		"due":     {reservation.Event{Time: 100, State: reservation.EventDue}, 100, true},
		"put off": {reservation.Event{Time: 100, State: reservation.EventDue, Until: 130}, 130, true},
		"running": {reservation.Event{Time: 100, State: reservation.EventRunning, Holder: "one"}, 100, false},
		"done":    {reservation.Event{Time: 100, State: reservation.EventDone}, 100, false},
	} {
		if at, due := lifecycle.At(tc.event); at != tc.at || due != tc.due {
			t.Errorf("%s: at %v, %v; want %v, %v", name, at, due, tc.at, tc.due)
		}
	}
}

func TestAStartAndAnEndTakeWork(t *testing.T) {
	for event, want := range map[reservation.EventType]bool{
		reservation.StartEvent: true, reservation.EndEvent: true, reservation.BeforeEndEvent: false, reservation.HealedEvent: false,
	} {
		if got := lifecycle.TakesWork(event); got != want {
			t.Errorf("%s: %v", event, got)
		}
	}
}

// The audit trail and the notifications name what happened by the action.
func TestEachEventOfAScheduleHasAnActionOfItsOwn(t *testing.T) {
	seen := map[reservation.Action]reservation.EventType{}
	for _, e := range lifecycle.Schedule(booked(100, 200, 30)) {
		action := lifecycle.Action(e.Type)
		if action == "" || seen[action] != "" {
			t.Errorf("the event %s has the action %q, as has %q", e.Type, action, seen[action])
		}
		seen[action] = e.Type
	}
}
