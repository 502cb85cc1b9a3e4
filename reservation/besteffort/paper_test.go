// SPDX-License-Identifier: Apache-2.0

package besteffort_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
)

// cpu returns the shape of a virtual machine of one CPU with that much memory.
func cpu(memory int64) resource.Vector { return resource.Vector{VCPUs: 1, MemoryMB: memory} }

// node returns a node with room for n virtual machines.
func node(name string, n int64) besteffort.Node {
	return besteffort.Node{Name: name, Free: resource.Vector{VCPUs: n, MemoryMB: n * 1024}}
}

// whole returns a reservation of a whole node.
func whole(node string, from, to span.Instant) besteffort.Hold {
	return besteffort.Hold{Node: node, Span: span.Span{Start: from, End: to}}
}

// job returns a request for n virtual machines.
func job(id string, duration int64, n int, parallel bool) sim.Work {
	w := sim.Work{Request: besteffort.Request{ID: id, Duration: duration, Shape: cpu(1024), Parallel: parallel}}
	for i := range n {
		w.VMs = append(w.VMs, besteffort.VM{ID: fmt.Sprintf("%s-%d", id, i+1)})
	}
	return w
}

// trial is a queue on a timeline that starts at 0.
type trial struct {
	*sim.Queue
	t *testing.T
}

func queue(t *testing.T, rules besteffort.Rules, nodes ...besteffort.Node) trial {
	t.Helper()
	q, err := sim.NewQueue(sim.NewTimeline(0), sim.QueueOptions{Rules: rules, Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	return trial{q, t}
}

// at runs do at an instant of the timeline.
func (q trial) at(at span.Instant, do func()) {
	q.Timeline.At(at, sim.Arriving, func() error { do(); return nil })
}

func (q trial) run(until span.Instant) {
	q.t.Helper()
	if err := q.Timeline.Run(context.Background(), until); err != nil {
		q.t.Fatal(err)
	}
}

// ran formats when the virtual machine of each request had its node, in the order of requests.
func (q trial) ran() string {
	var all []string
	for _, o := range q.Outcomes() {
		text := strings.TrimSuffix(o.VM, "-1")
		for _, p := range o.Pieces {
			text += fmt.Sprintf("[%d,%d)", int64(p.Node.Start), int64(p.Node.End))
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func (q trial) wantRan(want string) {
	q.t.Helper()
	q.run(span.Forever)
	if got := q.ran(); got != want {
		q.t.Errorf("ran %s; want %s", got, want)
	}
}

// The variants of the paper, check A000-8.
var (
	drain    = besteffort.Rules{Backfilling: besteffort.None}
	backfill = besteffort.Rules{Backfilling: besteffort.Aggressive}
	suspend  = besteffort.Rules{Backfilling: besteffort.None, Suspend: true}
)

func TestAQueueBeforeAReservationDrainsBackfillsOrIsSuspended(t *testing.T) {
	for _, c := range []struct {
		name      string
		rules     besteffort.Rules
		durations []int64
		want      string
	}{
		{"drain", drain, []int64{120, 60, 40}, "J1[200,320) J2[320,380) J3[380,420)"},
		{"backfill", backfill, []int64{120, 60, 40}, "J1[200,320) J2[0,60) J3[60,100)"},
		{"suspend", suspend, []int64{120, 60, 40}, "J1[0,100)[200,220) J2[220,280) J3[280,320)"},
		{"drain, two", drain, []int64{120, 150}, "J1[200,320) J2[320,470)"},
		{"backfill, two", backfill, []int64{120, 150}, "J1[200,320) J2[320,470)"},
		{"suspend, two", suspend, []int64{120, 150}, "J1[0,100)[200,220) J2[220,370)"},
	} {
		for _, kind := range []besteffort.Backfilling{besteffort.Aggressive, besteffort.Intermediate, besteffort.Conservative} {
			rules := c.rules
			if rules.Backfilling != besteffort.None {
				rules.Backfilling = kind
			} else if rules.Suspend && kind != besteffort.Aggressive {
				rules.Backfilling = kind // a suspended VM keeps its node under every backfilling
			}
			rules.Promises = 2
			t.Run(fmt.Sprintf("%s, %s", c.name, rules.Backfilling), func(t *testing.T) {
				q := queue(t, rules, node("N1", 1))
				q.Hold("AR", whole("N1", 100, 200))
				for i, d := range c.durations {
					q.Submit(job(fmt.Sprintf("J%d", i+1), d, 1, false))
				}
				q.wantRan(c.want)
			})
		}
	}
}
