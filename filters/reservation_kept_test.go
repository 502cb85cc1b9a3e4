// SPDX-License-Identifier: Apache-2.0

package filters_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// counting is a Promises that reports its revision and counts how often it is read.
type counting struct {
	promised
	revision uint64
	read     int
}

func (c *counting) Revision() uint64 { return c.revision }

func (c *counting) Promised(t span.Instant) []reservation.Claim {
	c.read++
	return c.promised.Promised(t)
}

func TestPromisesAreReadAgainOnlyWhereTheyMayBeOthers(t *testing.T) {
	p := &counting{promised: promised{claims: map[string]span.Span{"a": {Start: 100, End: 200}, "b": {Start: 100, End: 300}}}}
	list, err := filters.New(nil, filters.Options{Reservation: filters.Reservation{Promises: p, Fence: filters.FenceAlways}})
	if err != nil {
		t.Fatal(err)
	}
	f := one(t, list, "ReservationFilter")
	s := states(t, []inventory.HostState{{Name: "a"}, {Name: "b"}, {Name: "c"}})
	for _, step := range []struct {
		what string
		do   func()
		now  span.Instant
		want string
		read int
	}{
		{"at first", func() {}, 0, "c", 1},
		{"later", func() {}, 199, "c", 1},
		{"after a take", func() { s = s.WithTaken([]inventory.Take{{Host: 2, Instance: "i1"}}) }, 199, "c", 1},
		{"when a claim ends", func() {}, 200, "a,c", 2},
		{"when the clock is set back", func() {}, 150, "c", 3},
		{"with a new promise", func() { p.claims["c"], p.revision = span.Span{Start: 400, End: 500}, 1 }, 150, "", 4},
		{"of other hosts", func() { s = states(t, []inventory.HostState{{Name: "b"}, {Name: "d"}}) }, 150, "d", 5},
	} {
		step.do()
		if got, _ := left(t, f, s, placing.Request{}, step.now); got != step.want || p.read != step.read {
			t.Errorf("%s: %q pass and the promises were read %d times, want %q and %d times", step.what, got, p.read, step.want, step.read)
		}
	}
}

// stalled is a Promises whose first reading waits.
type stalled struct {
	counting
	readings      atomic.Int64
	reading, goOn chan struct{}
}

func (p *stalled) Promised(t span.Instant) []reservation.Claim {
	if p.readings.Add(1) == 1 {
		close(p.reading)
		<-p.goOn
	}
	return p.promised.Promised(t)
}

func TestADecisionDoesNotWaitForThePromisesThatAnotherReads(t *testing.T) {
	p := &stalled{reading: make(chan struct{}), goOn: make(chan struct{})}
	list, err := filters.New(nil, filters.Options{Reservation: filters.Reservation{Promises: p, Fence: filters.FenceAlways}})
	if err != nil {
		t.Fatal(err)
	}
	f, s := one(t, list, "ReservationFilter"), states(t, []inventory.HostState{{Name: "a"}})
	var all sync.WaitGroup
	all.Go(func() { f.For(s, &placing.Request{}, 0) })
	<-p.reading
	second := make(chan struct{})
	all.Go(func() {
		f.For(s, &placing.Request{}, 0)
		close(second)
	})
	select {
	case <-second:
	case <-time.After(time.Minute):
		t.Error("the second decision waits for the first one's reading")
	}
	close(p.goOn)
	all.Wait()
}
