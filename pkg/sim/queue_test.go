// SPDX-License-Identifier: Apache-2.0

package sim_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// newQueue returns a queue on one node for one virtual machine. It backfills by default.
func newQueue(t *testing.T, o sim.QueueOptions) *sim.Queue {
	t.Helper()
	if o.Rules.Backfilling == "" {
		o.Rules.Backfilling = besteffort.Aggressive
	}
	o.Nodes = []besteffort.Node{{Name: "N1", Free: resource.Vector{VCPUs: 1}}}
	q, err := sim.NewQueue(sim.NewTimeline(0), o)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// one returns a request for one virtual machine with the request's name.
func one(id string, duration, real int64, image string) sim.Work {
	return sim.Work{Real: real, Request: besteffort.Request{
		ID: id, Duration: duration, Shape: resource.Vector{VCPUs: 1}, Image: staging.Image{ID: image, Size: 480}, VMs: []besteffort.VM{{ID: id}},
	}}
}

func TestAQueueTellsWhatHappensAndKeepsTheAccountOfIt(t *testing.T) {
	q := newQueue(t, sim.QueueOptions{Rules: besteffort.Rules{
		Suspend: true, Backfilling: besteffort.None, Overheads: besteffort.Overheads{Boot: 5, Shutdown: 3, Operation: 2},
	}})
	var seen []string
	q.Happened = func(c sim.Change) error {
		seen = append(seen, fmt.Sprintf("%s@%d", c.Phase, int64(c.At)))
		return nil
	}
	q.Hold("AR", besteffort.Hold{Node: "N1", Span: span.Span{Start: 100, End: 200}})
	q.Submit(one("A", 120, 0, ""))
	if err := q.Timeline.Run(t.Context(), span.Forever); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"starting@0", "running@5", "suspending@98", "suspended@100", "resuming@200", "running@202", "stopping@229", "done@234",
	}
	if !slices.Equal(seen, want) {
		t.Errorf("what happened is %v\nwant %v", seen, want)
	}
	o := q.Outcomes()[0]
	pieces := []sim.Piece{
		{Name: "N1", Node: span.Span{Start: 0, End: 100}, Runs: span.Span{Start: 5, End: 98}},
		{Name: "N1", Node: span.Span{Start: 200, End: 234}, Runs: span.Span{Start: 202, End: 229}},
	}
	if !slices.Equal(o.Pieces, pieces) || o.Ran != 120 || o.Ended != 234 || q.Left() != 0 {
		t.Errorf("the outcome is %+v, %d left; want %+v", o, q.Left(), pieces)
	}
}

func TestAReservationThatIsReleasedEarlyAndAMachineThatEndsEarlyMakeRoom(t *testing.T) {
	q := newQueue(t, sim.QueueOptions{})
	q.Hold("AR", besteffort.Hold{Node: "N1", Span: span.Span{Start: 0, End: 500}})
	q.Timeline.At(100, sim.Ending, func() error { q.Release("AR"); return nil })
	q.Submit(one("A", 300, 50, ""))
	q.Submit(one("B", 300, 0, ""))
	if err := q.Timeline.Run(t.Context(), span.Forever); err != nil {
		t.Fatal(err)
	}
	if a, b := q.Outcomes()[0], q.Outcomes()[1]; started(a) != 100 || a.Ended != 150 || started(b) != 150 || b.Ended != 450 {
		t.Errorf("A %+v, B %+v; want A in [100, 150) and B in [150, 450)", a, b)
	}
}

func TestAnImageStaysForAsLongAsItIsKept(t *testing.T) {
	for keep, want := range map[int64]span.Instant{0: 48 + 10 + 48, 30: 48 + 10, sim.KeepForever: 48 + 10} {
		q := newQueue(t, sim.QueueOptions{Images: staging.Queue{Rate: 10}, Keep: keep})
		q.Submit(one("A", 10, 0, "I"))
		q.Timeline.At(58, sim.Arriving, func() error { q.Submit(one("B", 10, 0, "I")); return nil })
		if err := q.Timeline.Run(t.Context(), span.Forever); err != nil {
			t.Fatal(err)
		}
		if b := q.Outcomes()[1]; started(b) != want || len(q.Images.Transfers) != 0 {
			t.Errorf("kept for %d s, B starts at %d; want %d", keep, started(b), want)
		}
	}
}

// started returns when a virtual machine first had a node; Forever if it has had none.
func started(o *sim.Outcome) span.Instant {
	if len(o.Pieces) == 0 {
		return span.Forever
	}
	return o.Pieces[0].Node.Start
}
