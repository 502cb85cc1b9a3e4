// SPDX-License-Identifier: Apache-2.0

package besteffort_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// nodes returns n nodes for one virtual machine each.
func nodes(n int) (all []besteffort.Node) {
	for i := range n {
		all = append(all, node(fmt.Sprintf("N%d", i+1), 1))
	}
	return all
}

// running returns a request at a place of the queue whose virtual machines run on nodes until then.
func running(id string, place int64, until span.Instant, on ...string) besteffort.Request {
	r := job(id, 1000, len(on), false).Request
	r.Place = place
	for i := range r.VMs {
		r.VMs[i].Phase, r.VMs[i].Node, r.VMs[i].Until = besteffort.Running, on[i], until
	}
	return r
}

// waits returns a waiting request at a place of the queue.
func waits(id string, place, duration int64, n int, parallel bool) besteffort.Request {
	r := job(id, duration, n, parallel).Request
	r.Place = place
	for i := range r.VMs {
		r.VMs[i].Phase = besteffort.Waiting
	}
	return r
}

// acts formats the acts of a plan, such as "start A-1 N1".
func acts(p besteffort.Plan) string {
	var all []string
	for _, a := range p.Acts {
		all = append(all, fmt.Sprintf("%s %s %s", a.Action, a.VM, a.Node))
	}
	return strings.Join(all, ", ")
}

func wantActs(t *testing.T, p besteffort.Plan, want string) {
	t.Helper()
	if got := acts(p); got != want {
		t.Errorf("the plan is %q; want %q\n%+v", got, want, p)
	}
}

// wantExpected compares the expected start and latest end of a virtual machine.
func wantExpected(t *testing.T, p besteffort.Plan, vm string, start, end span.Instant) {
	t.Helper()
	e, ok := p.Expected[vm]
	if !ok || e.Start != start || e.End != end {
		t.Errorf("%s is expected from %d to %d (found %v): %s; want %d to %d", vm, int64(e.Start), int64(e.End), ok, e.Reason, int64(start), int64(end))
	}
}

func TestTheMachinesOfASerialRequestStartEachAsItCanThoseOfAParallelOneTogether(t *testing.T) {
	for parallel, want := range map[bool]string{false: "start A-1 N2", true: ""} {
		p := backfill.Plan(besteffort.Situation{Nodes: nodes(2), Requests: []besteffort.Request{
			running("R", 1, 100, "N1"), waits("A", 2, 50, 2, parallel),
		}})
		wantActs(t, p, want)
		wantExpected(t, p, "A-2", map[bool]span.Instant{false: 50, true: 100}[parallel], map[bool]span.Instant{false: 100, true: 150}[parallel])
	}
}

// The textbook case: two of four nodes are busy until 100. H needs three nodes for 100 s;
// C needs all four; D needs one for 250 s and delays C but not H; E delays no request.
func TestWhoIsPromisedAStartSaysWhoMayOvertake(t *testing.T) {
	for _, c := range []struct {
		rules besteffort.Rules
		want  string
	}{
		{besteffort.Rules{Backfilling: besteffort.None}, ""},
		{besteffort.Rules{Backfilling: besteffort.Aggressive}, "start D-1 N4, start E-1 N3"},
		{besteffort.Rules{Backfilling: besteffort.Intermediate, Promises: 1}, "start D-1 N4, start E-1 N3"},
		{besteffort.Rules{Backfilling: besteffort.Intermediate, Promises: 2}, "start E-1 N3"},
		{besteffort.Rules{Backfilling: besteffort.Conservative}, "start E-1 N3"},
	} {
		p := c.rules.Plan(besteffort.Situation{Nodes: nodes(4), Requests: []besteffort.Request{
			running("R", 1, 100, "N1", "N2"),
			waits("H", 2, 100, 3, true), waits("C", 3, 50, 4, true), waits("D", 4, 250, 1, true), waits("E", 5, 90, 1, true),
		}})
		wantActs(t, p, c.want)
		wantExpected(t, p, "H-1", 100, 200)
		for i, vm := range []string{"H-1", "C-1"} {
			if e := p.Expected[vm]; e.Position != i+1 || e.Reason == "" {
				t.Errorf("%s has the expectation %+v; want position %d", vm, e, i+1)
			}
		}
		start := span.Instant(200)
		if strings.Contains(c.want, "D") {
			start = 250
		}
		wantExpected(t, p, "C-1", start, start+50)
	}
}

func TestASuspensionIsOverWhenTheReservationBegins(t *testing.T) {
	rules := besteffort.Rules{Backfilling: besteffort.Aggressive, Suspend: true, Overheads: besteffort.Overheads{
		Boot: 10, Shutdown: 5, Operation: 2, SuspendRate: 128, ResumeRate: 64,
	}}
	q := queue(t, rules, nodes(2)...)
	q.Hold("AR", whole("N2", 100, 200))
	q.Submit(job("J", 300, 2, true))
	q.run(span.Forever)
	for _, o := range q.Outcomes() {
		// It takes 8 s of memory and 2 operations to suspend, 16 s and 2 to resume. The VM runs for 78 s first.
		want := []sim.Piece{
			{Node: span.Span{Start: 0, End: 100}, Runs: span.Span{Start: 10, End: 88}},
			{Node: span.Span{Start: 200, End: 200 + 20 + 222 + 9}, Runs: span.Span{Start: 220, End: 220 + 222}},
		}
		for i := range want {
			want[i].Name = map[string]string{"J-1": "N1", "J-2": "N2"}[o.VM]
		}
		if !slices.Equal(o.Pieces, want) {
			t.Errorf("%s had %+v; want %+v", o.VM, o.Pieces, want)
		}
	}
}

// A reservation of half of the node begins at 100: one machine stays beside it, and the other is suspended.
func TestWhoIsSuspendedBesideOneThatStaysStartsWithIt(t *testing.T) {
	rules := besteffort.Rules{Backfilling: besteffort.Aggressive, Suspend: true}
	p := rules.Plan(besteffort.Situation{
		Nodes:    []besteffort.Node{node("N1", 2)},
		Holds:    []besteffort.Hold{{Node: "N1", Span: span.Span{Start: 100, End: 200}, Resources: cpu(512)}},
		Requests: []besteffort.Request{waits("J", 1, 150, 2, false)},
	})
	wantActs(t, p, "start J-1 N1, start J-2 N1")
}

func TestWhatIsNotWorthItsSuspensionDoesNotStart(t *testing.T) {
	for worthwhile, want := range map[float64]string{0: "start J-1 N1", 1: "start J-1 N1", 5: "start J-1 N1", 6: ""} {
		// It takes 8 s to suspend and 8 s to resume, which leaves 92 s before the reservation.
		rules := besteffort.Rules{Backfilling: besteffort.None, Suspend: true, Worthwhile: worthwhile, Overheads: besteffort.Overheads{SuspendRate: 128, ResumeRate: 128}}
		p := rules.Plan(besteffort.Situation{
			Nodes: nodes(1), Holds: []besteffort.Hold{whole("N1", 100, 200)}, Requests: []besteffort.Request{waits("J", 1, 300, 1, false)},
		})
		wantActs(t, p, want)
	}
}

func TestWhatIsSuspendedGoesOnWhereItsMemoryIsOrIsMoved(t *testing.T) {
	suspended := waits("J", 1, 300, 1, false)
	suspended.VMs[0] = besteffort.VM{ID: "J-1", Phase: besteffort.Suspended, Node: "N1", Ran: 100}
	s := besteffort.Situation{Now: 10, Nodes: nodes(2), Holds: []besteffort.Hold{whole("N1", 0, 500)}, Requests: []besteffort.Request{suspended}}
	rules := besteffort.Rules{Backfilling: besteffort.Aggressive, Suspend: true, Overheads: besteffort.Overheads{MoveRate: 12.5}}
	p := rules.Plan(s)
	wantActs(t, p, "")
	wantExpected(t, p, "J-1", 500, 700)

	rules.Migrate = true
	p = rules.Plan(s)
	wantActs(t, p, "move J-1 N2") // 1,024 MB at 12.5 MB/s
	wantExpected(t, p, "J-1", 92, 292)

	s.Requests[0].VMs[0].Phase, s.Requests[0].VMs[0].Node, s.Requests[0].VMs[0].Until = besteffort.Moving, "N2", 92
	wantActs(t, rules.Plan(s), "")
	s.Now, s.Requests[0].VMs[0].Phase = 92, besteffort.Suspended
	wantActs(t, rules.Plan(s), "resume J-1 N2")

	s.Holds, s.Requests[0].VMs[0].Node = nil, "N1"
	wantActs(t, rules.Plan(s), "resume J-1 N1")
	s.Nodes = s.Nodes[1:]
	wantActs(t, rules.Plan(s), "move J-1 N2")
}

func TestWhatIsMovedInNoTimeIsMovedBeforeItIsResumed(t *testing.T) {
	rules := besteffort.Rules{Backfilling: besteffort.Aggressive, Suspend: true, Migrate: true}
	for _, parallel := range []bool{false, true} {
		suspended := waits("J", 1, 300, 2, parallel)
		for i, on := range []string{"N1", "N2"} {
			suspended.VMs[i] = besteffort.VM{ID: suspended.VMs[i].ID, Phase: besteffort.Suspended, Node: on, Ran: 100}
		}
		s := besteffort.Situation{Now: 10, Nodes: nodes(3), Holds: []besteffort.Hold{whole("N2", 0, 500)}, Requests: []besteffort.Request{suspended}}
		p := rules.Plan(s)
		if parallel { // the other VM waits for it
			wantActs(t, p, "move J-2 N3")
			wantExpected(t, p, "J-1", 10, 210)
		} else {
			wantActs(t, p, "resume J-1 N1, move J-2 N3")
		}
		wantExpected(t, p, "J-2", 10, 210)
		if p.Next <= s.Now {
			t.Errorf("the next plan is due at %d", p.Next)
		}
		s.Requests[0].VMs[1].Node = "N3"
		wantActs(t, rules.Plan(s), "resume J-1 N1, resume J-2 N3")

		q := queue(t, rules, nodes(3)...)
		q.Hold("AR", whole("N1", 100, 500), whole("N2", 300, 400))
		q.Submit(job("K", 150, 2, parallel))
		q.run(span.Forever)
		for _, o := range q.Outcomes() {
			for i, piece := range o.Pieces {
				if i > 0 && piece.Name != o.Pieces[i-1].Name && o.Moves == 0 {
					t.Errorf("%s continued on another node without a move: %+v", o.VM, o.Pieces)
				}
			}
		}
	}
}

// The node's use of the other resources exceeds its capacity.
func TestOnlyWhatIsAskedForCounts(t *testing.T) {
	over := node("N1", 2)
	over.Free.DiskGB, over.Free.Custom = -5, map[string]int64{"CUSTOM_FPGA": -1}
	for n := 1; n <= 2; n++ {
		for _, parallel := range []bool{false, true} {
			r := waits("J", 1, 10, n, parallel)
			want := []string{"start J-1 N1", "start J-1 N1, start J-2 N1"}[n-1]
			wantActs(t, backfill.Plan(besteffort.Situation{Nodes: []besteffort.Node{over}, Requests: []besteffort.Request{r}}), want)
			r.Shape.DiskGB = 1
			wantActs(t, backfill.Plan(besteffort.Situation{Nodes: []besteffort.Node{over}, Requests: []besteffort.Request{r}}), "")
		}
	}
}

func TestAReservationOnTopOfWhatRunsDrivesItOutHoweverTheRulesAre(t *testing.T) {
	for _, suspends := range []bool{true, false} {
		rules := besteffort.Rules{Backfilling: besteffort.Aggressive, Suspend: suspends, Overheads: besteffort.Overheads{SuspendRate: 64}}
		s := besteffort.Situation{
			Now: 10, Nodes: nodes(1), Holds: []besteffort.Hold{whole("N1", 100, 200)}, Requests: []besteffort.Request{running("R", 1, 300, "N1")},
		}
		p := rules.Plan(s)
		wantActs(t, p, "")
		if p.Next != 84 { // 16 s of memory
			t.Errorf("the next plan is due at %d; want 84", p.Next)
		}
		s.Now = 84
		p = rules.Plan(s)
		wantActs(t, p, "suspend R-1 N1")
		if said := strings.Contains(p.Acts[0].Reason, "a promise comes first"); said == suspends {
			t.Errorf("the reason is %q", p.Acts[0].Reason)
		}
		s.Now = 95
		p = rules.Plan(s)
		wantActs(t, p, "suspend R-1 N1")
		if !strings.Contains(p.Acts[0].Reason, "too late") || p.Acts[0].Until != 111 {
			t.Errorf("the suspension lasts until %d: %q", p.Acts[0].Until, p.Acts[0].Reason)
		}
	}
}

func TestTheYoungestLeavesFirstAndAParallelRequestAsAWhole(t *testing.T) {
	s := besteffort.Situation{
		Now: 100, Nodes: []besteffort.Node{node("N1", 2), node("N2", 1)},
		Holds: []besteffort.Hold{{Node: "N1", Span: span.Span{Start: 100, End: 200}, Resources: cpu(1024)}},
		Requests: []besteffort.Request{
			running("old", 1, 300, "N1"), running("young", 2, 300, "N1", "N2"),
		},
	}
	wantActs(t, suspend.Plan(s), "suspend young-1 N1")
	s.Requests[1].Parallel = true
	wantActs(t, suspend.Plan(s), "suspend young-1 N1, suspend young-2 N2")
	s.Requests[0].Place = 3
	wantActs(t, suspend.Plan(s), "suspend old-1 N1")
}

func TestAnEarlyEndPullsForwardAndALateOneKeepsTheNode(t *testing.T) {
	q := queue(t, backfill, nodes(1)...)
	early := job("A", 300, 1, false)
	early.Real = 40
	q.Submit(early)
	q.Submit(job("B", 100, 1, false))
	q.wantRan("A[0,40) B[40,140)")

	s := besteffort.Situation{Now: 100, Nodes: nodes(1), Requests: []besteffort.Request{running("A", 1, 90, "N1"), waits("B", 2, 10, 1, false)}}
	wantActs(t, backfill.Plan(s), "stop A-1 N1")
	for _, phase := range []besteffort.Phase{besteffort.Starting, besteffort.Suspending, besteffort.Resuming, besteffort.Stopping} {
		s.Requests[0].VMs[0].Phase = phase // expected to end at 90; it is 100 now
		p := backfill.Plan(s)
		wantActs(t, p, "")
		if e := p.Expected["B-1"]; e.Start <= s.Now || p.Next <= s.Now {
			t.Errorf("with a predecessor late in phase %s, B is expected at %d; the next plan is due at %d", phase, e.Start, p.Next)
		}
	}
	s.Requests[0].VMs[0].Phase = besteffort.Failed
	wantActs(t, backfill.Plan(s), "start B-1 N1")
}

func TestWhatFitsOnNoNodeKeepsNobodyWaiting(t *testing.T) {
	large := waits("L", 1, 10, 1, false)
	large.Shape.VCPUs = 2
	p := drain.Plan(besteffort.Situation{Nodes: nodes(2), Requests: []besteffort.Request{large, waits("W", 2, 10, 3, true), waits("A", 3, 10, 1, false)}})
	wantActs(t, p, "start A-1 N1")
	wantExpected(t, p, "L-1", span.Forever, span.Forever)
	wantExpected(t, p, "W-3", span.Forever, span.Forever)
}

func TestYearsAreLongAndNothingOverflows(t *testing.T) {
	long := waits("A", 1, math.MaxInt64, 2, true)
	rules := besteffort.Rules{Backfilling: besteffort.Conservative, Suspend: true, Worthwhile: math.MaxFloat64, Overheads: besteffort.Overheads{
		Boot: math.MaxInt64, Operation: math.MaxInt64, SuspendRate: 1e-300, ResumeRate: 1e-300, MoveRate: 1e-300,
	}}
	for _, r := range []besteffort.Rules{{Backfilling: besteffort.Conservative, Suspend: true}, rules} {
		p := r.Plan(besteffort.Situation{Now: 5, Nodes: nodes(2), Requests: []besteffort.Request{long, waits("B", 2, 10, 1, false)}})
		wantActs(t, p, "start A-1 N1, start A-2 N2")
		wantExpected(t, p, "B-1", span.Forever, span.Forever)
	}
	// With a reservation each day for a year, the plan has no known end, but there is a plan.
	s := besteffort.Situation{Nodes: nodes(1), Requests: []besteffort.Request{waits("A", 1, 86400*365, 1, false), waits("B", 2, 10, 1, false)}}
	for d := range span.Instant(365) {
		s.Holds = append(s.Holds, whole("N1", d*86400+1000, d*86400+2000))
	}
	p := suspend.Plan(s)
	wantActs(t, p, "start A-1 N1")
}

// Check A000-7, and two machines that need the same image, which one transfer may serve.
func TestATransferServesAllWhoNeedTheImageOnTheNodeWhereThatIsAllowed(t *testing.T) {
	for avoid, want := range map[bool]string{true: "A[48,148) B[48,148)", false: "A[48,148) B[96,196)"} {
		q, err := sim.NewQueue(sim.NewTimeline(0), sim.QueueOptions{
			Rules: backfill, Nodes: []besteffort.Node{node("N1", 2)}, Images: staging.Queue{Rate: 12.5e6, Avoid: avoid},
		})
		if err != nil {
			t.Fatal(err)
		}
		sent := 0
		q.Looked = func(_ besteffort.Situation, p besteffort.Plan) error { sent += len(p.Transfers); return nil }
		with := func(id string) sim.Work {
			w := job(id, 100, 1, false)
			w.Image = staging.Image{ID: "I", Size: 600e6}
			return w
		}
		q.Submit(with("A"))
		trial{q, t}.at(10, func() { q.Submit(with("B")) })
		trial{q, t}.wantRan(want)
		if transfers := map[bool]int{true: 1, false: 2}[avoid]; sent != transfers {
			t.Errorf("%d transfers; want %d", sent, transfers)
		}
	}
}

func TestTheNodeThatHasTheImageIsTakenAndOthersAreFreeUntilItComes(t *testing.T) {
	image := staging.Image{ID: "I", Size: 480}
	a, b := waits("A", 1, 100, 1, false), waits("B", 2, 40, 1, false)
	a.Image = image
	s := besteffort.Situation{Nodes: nodes(2), Requests: []besteffort.Request{a, b}, Images: staging.Queue{
		Rate: 10, Pools: map[string][]staging.Entry{"N2": {{Image: image, Expire: 1000}}},
	}}
	wantActs(t, backfill.Plan(s), "start A-1 N2, start B-1 N1")

	s.Images.Pools = nil
	s.Nodes = nodes(1)
	p := backfill.Plan(s)
	wantActs(t, p, "stage A-1 N1, start B-1 N1") // B ends before the image arrives
	wantExpected(t, p, "A-1", 48, 148)
	if len(p.Transfers) != 1 || p.Transfers[0].Node != "N1" || p.Transfers[0].End != 48 {
		t.Errorf("the transfers are %+v", p.Transfers)
	}
	s.Requests[1].Duration = 49
	wantActs(t, backfill.Plan(s), "stage A-1 N1")

	s.Requests = []besteffort.Request{waits("A", 1, 100, 3, true)}
	s.Requests[0].Image, s.Nodes = image, nodes(3)
	p = backfill.Plan(s)
	wantActs(t, p, "stage A-1 N1, stage A-2 N2, stage A-3 N3")
	wantExpected(t, p, "A-1", 144, 244) // one transfer after the other, then both machines at once
}

func TestANodeThatTakesNoBestEffortWorkAnyMoreKeepsWhatRuns(t *testing.T) {
	s := besteffort.Situation{Now: 100, Nodes: nodes(1), Requests: []besteffort.Request{
		running("R", 1, 200, "gone"), waits("A", 2, 10, 1, false), waits("B", 3, 10, 1, false),
	}}
	wantActs(t, drain.Plan(s), "start A-1 N1")
	s.Holds = []besteffort.Hold{whole("gone", 100, 200)}
	wantActs(t, drain.Plan(s), "suspend R-1 gone, start A-1 N1")
}

func TestRulesThatMakeNoSenseAreRefusedByName(t *testing.T) {
	for field, rules := range map[string]besteffort.Rules{
		"":                            {Backfilling: besteffort.Intermediate, Promises: 2, Worthwhile: 1},
		"backfilling":                 {Backfilling: "off"},
		"backfilling_reservations":    {Backfilling: besteffort.Intermediate},
		"scheduling_threshold_factor": {Backfilling: besteffort.None, Worthwhile: math.NaN()},
		"boot_time":                   {Backfilling: besteffort.None, Overheads: besteffort.Overheads{Boot: -1}},
		"suspend_rate":                {Backfilling: besteffort.None, Overheads: besteffort.Overheads{SuspendRate: math.Inf(1)}},
	} {
		err := rules.Check()
		var f *fault.Error
		if errors.As(err, &f); (err == nil) != (field == "") || f != nil && (f.Field != field || f.Kind != fault.Invalid) {
			t.Errorf("%+v: %v; want the field %q", rules, err, field)
		}
	}
}
