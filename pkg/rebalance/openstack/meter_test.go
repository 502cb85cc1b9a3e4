// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/span"
)

func TestUseIsWhatPassedBetweenTwoReadings(t *testing.T) {
	at := func(seconds span.Instant, busy, up, use float64) reading {
		return reading{at: seconds, time: nova.CPUTime{Busy: busy, Up: up}, use: use}
	}
	for name, tc := range map[string]struct {
		before reading
		time   nova.CPUTime
		now    span.Instant
		use    float64 // -1: unknown
	}{
		"the first with an uptime":     {reading{}, nova.CPUTime{Busy: 50, Up: 100}, 1000, 0.5},
		"the first without":            {reading{}, nova.CPUTime{Busy: 50}, 1000, -1},
		"a minute later":               {at(1000, 50, 100, 0.5), nova.CPUTime{Busy: 170, Up: 160}, 1060, 2},
		"a minute later, no uptime":    {at(1000, 50, 0, -1), nova.CPUTime{Busy: 80}, 1060, 0.5},
		"too soon":                     {at(1000, 50, 100, 0.5), nova.CPUTime{Busy: 60, Up: 110}, 1010, 0.5},
		"too soon after one unknown":   {at(1000, 50, 0, -1), nova.CPUTime{Busy: 60}, 1010, -1},
		"started anew":                 {at(1000, 50, 100, 0.5), nova.CPUTime{Busy: 3, Up: 30}, 1060, 0.1},
		"started anew, with more busy": {at(1000, 5, 100, 0.5), nova.CPUTime{Busy: 30, Up: 30}, 1060, 1},
	} {
		r, measured := measure(tc.before, tc.time, tc.now)
		if measured != (tc.use >= 0) || measured && (r.use < tc.use-1e-9 || r.use > tc.use+1e-9) {
			t.Errorf("%s: %v, %v; want %v", name, r.use, measured, tc.use)
		}
	}
}

// diagnostics are those of instances on hosts. Nova waits for dead hosts.
type diagnostics struct {
	mu              sync.Mutex
	dead            map[string]bool // instances on dead hosts
	mute            map[string]bool // instances whose driver reports nothing
	asked, now, top int
}

func (d *diagnostics) count(by int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked, d.now = d.asked+max(by, 0), d.now+by
	d.top = max(d.top, d.now)
}

func (d *diagnostics) CPUTime(ctx context.Context, id string) (nova.CPUTime, error) {
	d.count(1)
	defer d.count(-1)
	switch {
	case d.mute[id]:
		return nova.CPUTime{}, fault.New(fault.Invalid, "it does not tell")
	case d.dead[id]:
		<-ctx.Done()
		return nova.CPUTime{}, fault.New(fault.Unavailable, "no answer")
	}
	select {
	case <-time.After(10 * time.Millisecond):
		return nova.CPUTime{Busy: 50, Up: 100}, nil
	case <-ctx.Done():
		return nova.CPUTime{}, fault.New(fault.Unavailable, "no answer in time")
	}
}

// full returns the instances of hosts, and those on dead hosts.
func full(hosts, guests, dead int) (on map[string][]string, gone map[string]bool) {
	on, gone = map[string][]string{}, map[string]bool{}
	for h := range hosts {
		for g := range guests {
			id := fmt.Sprintf("%02d-%02d", h, g)
			on[fmt.Sprint("h", h)] = append(on[fmt.Sprint("h", h)], id)
			gone[id] = h < dead
		}
	}
	return on, gone
}

func TestHostsThatAreDeadAreAskedOnceAndHoldUpNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on, gone := full(10, 20, 2)
		d := &diagnostics{dead: gone}
		m := &Meter{Compute: d, Now: func() span.Instant { return span.Instant(time.Now().Unix()) }}
		begun := time.Now()
		if use := m.Use(t.Context(), on); len(use) != 8*20 || time.Since(begun) > perReading {
			t.Errorf("of %d it was measured, in %v", len(use), time.Since(begun))
		}
		if d.top > atOnce {
			t.Errorf("there were %d requests at once", d.top)
		}
		time.Sleep(apart * time.Second)
		d.asked, begun = 0, time.Now()
		if use := m.Use(t.Context(), on); len(use) != 8*20 || d.asked != 8*20 || time.Since(begun) > perCall {
			t.Errorf("again: of %d it was measured by %d calls, in %v", len(use), d.asked, time.Since(begun))
		}
		time.Sleep(quiet * time.Second)
		d.dead = nil
		if use := m.Use(t.Context(), on); len(use) != 10*20 {
			t.Errorf("once they live: of %d it was measured", len(use))
		}
	})
}

func TestAReadingOfManyDeadHostsEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		on, gone := full(100, 2, 90)
		m := &Meter{Compute: &diagnostics{dead: gone}, Now: func() span.Instant { return span.Instant(time.Now().Unix()) }}
		begun := time.Now()
		for range 10 {
			if m.Use(t.Context(), on); time.Since(begun) > perReading {
				t.Fatal("it took", time.Since(begun))
			}
			begun = time.Now()
		}
		if use := m.Use(t.Context(), on); len(use) != 20 {
			t.Errorf("after some readings %d guests are measured, want all that live", len(use))
		}
	})
}

func TestWhoDoesNotTellIsLeftAloneAndHisHostIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &diagnostics{mute: map[string]bool{"00-00": true}}
		m := &Meter{Compute: d, Now: func() span.Instant { return span.Instant(time.Now().Unix()) }}
		on, _ := full(1, 3, 0)
		m.Use(t.Context(), on)
		time.Sleep(apart * time.Second)
		if use := m.Use(t.Context(), on); len(use) != 2 || d.asked != 5 {
			t.Errorf("of %d it was measured, by %d calls", len(use), d.asked)
		}
	})
}
