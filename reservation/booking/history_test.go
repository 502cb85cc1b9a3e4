// SPDX-License-Identifier: Apache-2.0

package booking_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/reservation"
)

func TestALogKeepsTheLastTwentyChanges(t *testing.T) {
	s := newScene(t, named("a"))
	r := s.book(t, during(1, 3600, 7200))
	for i := range 30 {
		r = s.change(t, r.ID, renamed(fmt.Sprint("name ", i)))
	}
	var details []string
	for _, e := range s.get(t, r.ID).Events {
		if e.Type == reservation.ChangedEvent {
			details = append(details, e.Detail)
		}
	}
	if len(details) != 20 || !strings.Contains(details[0], `to "name 10"`) || !strings.Contains(details[19], `to "name 29"`) {
		t.Errorf("the log has %d changes: %v", len(details), details)
	}
	if first, last := r.Events[0].Type, r.Events[len(r.Events)-1].Type; first != reservation.CreatedEvent || last != reservation.EndEvent {
		t.Errorf("the log begins with %s and ends with %s", first, last)
	}
}

func TestALongNameIsCutInTheLogAndKeptWhole(t *testing.T) {
	s := newScene(t, named("a"))
	r := s.book(t, during(1, 3600, 7200))
	long := strings.Repeat("\U0010fffe", 255)
	for _, name := range []string{long, long[:len(long)-4] + "x"} {
		r = s.change(t, r.ID, renamed(name))
		if stored := s.get(t, r.ID); stored.Name != name || stored.Version != r.Version {
			t.Errorf("stored is %q in version %d", stored.Name, stored.Version)
		}
	}
	for _, e := range r.Events {
		if len(e.Detail) > 1300 {
			t.Errorf("the detail of %s has %d bytes", e.Type, len(e.Detail))
		}
	}
}
