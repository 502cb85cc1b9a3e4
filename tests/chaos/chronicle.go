// SPDX-License-Identifier: Apache-2.0

package chaos

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// Chronicle lists the disturbances of the services, in order.
type Chronicle []struct {
	what string
	at   time.Time
}

// Note records a disturbance that happens now.
func (h *Chronicle) Note(what string) {
	*h = append(*h, struct {
		what string
		at   time.Time
	}{what, time.Now()})
}

// before returns the last disturbance before an instant.
func (h Chronicle) before(at time.Time) string {
	what := "nothing yet"
	for _, done := range h {
		if done.at.After(at) {
			break
		}
		what = done.what
	}
	return what
}

// Report logs, for each kind of disturbance, the longest time without an acknowledged booking
// at any replica and how late events were. A silence counts for the last disturbance before the
// end of its first second, a late event for the last one before it was carried out.
func (h Chronicle) Report(t *testing.T, users []*User, c *Checker) {
	t.Helper()
	times := make(map[string]int)
	for _, done := range h {
		times[done.what]++
	}
	var booked []time.Time
	for _, u := range users {
		booked = append(booked, u.booked...)
	}
	slices.SortFunc(booked, time.Time.Compare)
	silence := make(map[string]time.Duration)
	for i := range len(booked) - 1 {
		long := booked[i+1].Sub(booked[i])
		what := h.before(booked[i].Add(min(long, time.Second)))
		silence[what] = max(silence[what], long)
	}
	late := make(map[string]int64)
	for _, r := range c.records {
		for _, e := range r.events {
			if e.state == "done" && (e.kind == "start" || e.kind == "end") {
				what := h.before(time.Unix(e.done, 0))
				late[what] = max(late[what], e.done-e.due)
			}
		}
	}
	for _, what := range slices.Sorted(maps.Keys(times)) {
		t.Logf("%3d x %s: at most %v without an acknowledged booking, an event at most %d s late",
			times[what], what, silence[what].Round(10*time.Millisecond), late[what])
	}
}
