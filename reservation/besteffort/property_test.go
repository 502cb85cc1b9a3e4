// SPDX-License-Identifier: Apache-2.0

package besteffort_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// scene is a cloud, its requests, and the results.
type scene struct {
	rules  besteffort.Rules
	nodes  []besteffort.Node
	holds  []arriving
	work   []arriving
	images staging.Queue
	keep   int64
}

// arriving is a hold or a request that is known from an instant on.
type arriving struct {
	at   span.Instant
	hold besteffort.Hold
	work sim.Work
}

// kind limits what draw draws.
type kind struct {
	backfillings  []besteffort.Backfilling
	suspend       bool // suspension may be on
	partial       bool // holds may take a part of a node
	migrate       bool // migration may be on
	images        bool // requests may need images
	overheads     bool
	equal, serial bool // all shapes are the same; all requests are serial
}

var anything = kind{backfillings: besteffort.Backfillings, suspend: true, partial: true, migrate: true, images: true, overheads: true}

// known is how long before its start a hold is known: longer than it takes to clear its node.
const known = 200

func draw(t *rapid.T, k kind) scene {
	small := func(label string) int64 { return rapid.Int64Range(0, 9).Draw(t, label) }
	s := scene{rules: besteffort.Rules{
		Backfilling: rapid.SampledFrom(k.backfillings).Draw(t, "backfilling"), Promises: rapid.IntRange(1, 3).Draw(t, "promises"),
		Suspend: k.suspend && rapid.Bool().Draw(t, "suspend"), Migrate: k.migrate && rapid.Bool().Draw(t, "migrate"),
		Worthwhile: float64(rapid.IntRange(0, 2).Draw(t, "worthwhile")),
	}}
	if k.overheads && rapid.Bool().Draw(t, "overheads") {
		s.rules.Overheads = besteffort.Overheads{
			Boot: small("boot"), Shutdown: small("shutdown"), Operation: small("operation") / 4, SuspendRate: float64(small("suspend rate")) * 100,
			ResumeRate: float64(small("resume rate")) * 100, MoveRate: float64(small("move rate")) * 50,
		}
	}
	var slots int64
	for i := range rapid.IntRange(1, 4).Draw(t, "nodes") {
		n := rapid.Int64Range(1, 3).Draw(t, "cpus")
		s.nodes = append(s.nodes, node(fmt.Sprintf("N%d", i+1), n))
		slots += n
	}
	for i, n := range s.nodes {
		for end := int64(0); ; {
			start := end + rapid.Int64Range(known, 900).Draw(t, "gap")
			end = start + rapid.Int64Range(1, 300).Draw(t, "held")
			if start > 3000 || len(s.holds) > 4*(i+1) {
				break
			}
			h := whole(n.Name, span.Instant(start), span.Instant(end))
			if k.partial && rapid.Bool().Draw(t, "partial") {
				h.Resources = cpu(512)
			}
			s.holds = append(s.holds, arriving{at: span.Instant(rapid.Int64Range(0, start-known).Draw(t, "known")), hold: h})
		}
	}
	if k.images && rapid.Bool().Draw(t, "images") {
		s.images = staging.Queue{Rate: 10, Avoid: rapid.Bool().Draw(t, "avoid")}
		s.keep = rapid.SampledFrom([]int64{0, 100, sim.KeepForever}).Draw(t, "keep")
	}
	for i := range rapid.IntRange(1, 7).Draw(t, "requests") {
		w := job(fmt.Sprintf("J%d", i+1), rapid.Int64Range(1, 500).Draw(t, "duration"), rapid.IntRange(1, int(min(slots, 4))).Draw(t, "vms"), !k.serial && rapid.Bool().Draw(t, "parallel"))
		if !k.equal && rapid.Bool().Draw(t, "small") {
			w.Shape.MemoryMB = 300
		}
		w.Real = rapid.Int64Range(0, 500).Draw(t, "real")
		if s.images.Rate > 0 {
			id := rapid.SampledFrom([]string{"", "A", "B"}).Draw(t, "image")
			w.Image = staging.Image{ID: id, Size: 300 * int64(len(id))}
		}
		s.work = append(s.work, arriving{at: span.Instant(rapid.Int64Range(0, 600).Draw(t, "submitted")), work: w})
	}
	return s
}

// play runs a scene to its end.
func (s scene) play(t *rapid.T, watch func(*sim.Queue)) *sim.Queue {
	q, err := sim.NewQueue(sim.NewTimeline(0), sim.QueueOptions{Rules: s.rules, Nodes: s.nodes, Images: s.images, Keep: s.keep})
	if err != nil {
		t.Fatal(err)
	}
	if watch != nil {
		watch(q)
	}
	for i, a := range s.holds {
		q.Timeline.At(a.at, sim.Arriving, func() error { q.Hold(fmt.Sprint("AR", i), a.hold); return nil })
	}
	for _, a := range s.work {
		q.Timeline.At(a.at, sim.Arriving, func() error { q.Submit(a.work); return nil })
	}
	if err := q.Timeline.Run(context.Background(), 1_000_000); err != nil {
		t.Fatal(err)
	}
	return q
}

func (s scene) request(id string) sim.Work {
	return s.work[slices.IndexFunc(s.work, func(a arriving) bool { return a.work.ID == id })].work
}

func TestCapacityIsNeverExceededAndNobodyIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, anything)
		q := s.play(t, nil)
		if q.Left() > 0 {
			t.Fatalf("%d virtual machines have not ended: %+v", q.Left(), q.Planned())
		}
		uses := map[string][]besteffort.Hold{}
		for _, h := range s.holds {
			uses[h.hold.Node] = append(uses[h.hold.Node], h.hold)
		}
		for _, o := range q.Outcomes() {
			w := s.request(o.Request)
			want := w.Duration
			if w.Real > 0 {
				want = min(want, w.Real)
			}
			if o.Ran != want {
				t.Errorf("%s ran for %d s; want %d: %+v", o.VM, o.Ran, want, o.Pieces)
			}
			elsewhere := 0
			for i, p := range o.Pieces {
				if i > 0 && p.Name != o.Pieces[i-1].Name {
					elsewhere++
				}
				uses[p.Name] = append(uses[p.Name], besteffort.Hold{Node: p.Name, Span: p.Node, Resources: w.Shape})
			}
			if elsewhere > o.Moves {
				t.Errorf("%s continued on another node %d times, but moved %d times: %+v", o.VM, elsewhere, o.Moves, o.Pieces)
			}
		}
		for _, n := range s.nodes {
			checkUses(t, n, uses[n.Name])
		}
		checkTogether(t, s, q)
	})
}

// checkUses fails if, at any instant, more of a node is used than it has.
func checkUses(t *rapid.T, n besteffort.Node, uses []besteffort.Hold) {
	for _, at := range uses {
		var sum resource.Vector
		wholes, others := 0, 0
		for _, u := range uses {
			switch {
			case !u.Span.Contains(at.Span.Start):
			case u.Resources.IsZero():
				wholes++
			default:
				sum, others = sum.Add(u.Resources), others+1
			}
		}
		if !sum.Fits(n.Free) || wholes > 1 || wholes > 0 && others > 0 {
			t.Fatalf("at %d node %s has too much on it: %+v", at.Span.Start, n.Name, uses)
		}
	}
}

// checkTogether fails if virtual machines of a parallel request start at different times.
func checkTogether(t *rapid.T, s scene, q *sim.Queue) {
	first := map[string]*sim.Outcome{}
	for _, o := range q.Outcomes() {
		if !s.request(o.Request).Parallel {
			continue
		}
		f := first[o.Request]
		if f == nil {
			first[o.Request] = o
			continue
		}
		same := len(f.Pieces) == len(o.Pieces)
		for i := range f.Pieces {
			same = same && f.Pieces[i].Node == o.Pieces[i].Node
		}
		if !same {
			t.Fatalf("%s has %+v\n%s has %+v", f.VM, f.Pieces, o.VM, o.Pieces)
		}
	}
}

func TestThePlanDependsOnNoOrderOfWhatItIsGivenAndLooksAhead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, anything)
		s.play(t, func(q *sim.Queue) {
			q.Looked = func(at besteffort.Situation, plan besteffort.Plan) error {
				slices.Reverse(at.Holds)
				slices.Reverse(at.Requests)
				for i := range at.Requests {
					slices.Reverse(at.Requests[i].VMs)
				}
				if again := s.rules.Plan(at); !reflect.DeepEqual(again, plan) {
					return fmt.Errorf("the plan is\n%+v\nwith the input in another order it is\n%+v", plan, again)
				}
				if plan.Next <= at.Now {
					return fmt.Errorf("the next plan is due at %v", plan.Next)
				}
				return nil
			}
		})
	})
}

func TestWithoutBackfillingNobodyStartsBeforeAnEarlierOne(t *testing.T) {
	k := anything
	k.backfillings, k.images = []besteffort.Backfilling{besteffort.None}, false
	rapid.Check(t, func(t *rapid.T) {
		s := draw(t, k)
		s.play(t, func(q *sim.Queue) {
			q.Happened = func(c sim.Change) error {
				if c.Phase != besteffort.Starting {
					return nil
				}
				for _, r := range q.Situation().Requests {
					if r.ID == c.Request {
						break
					}
					for _, vm := range r.VMs {
						if vm.Phase == besteffort.Waiting {
							return fmt.Errorf("%s starts before %s", c.VM, vm.ID)
						}
					}
				}
				return nil
			}
		})
	})
}

func TestThePromisedStartOfTheFirstNeverMovesLater(t *testing.T) {
	for name, k := range map[string]kind{
		"backfilled": {backfillings: []besteffort.Backfilling{besteffort.Aggressive, besteffort.Intermediate, besteffort.Conservative}, partial: true, overheads: true},
		"suspended":  {backfillings: []besteffort.Backfilling{besteffort.Aggressive}, suspend: true, partial: true, overheads: true, equal: true, serial: true},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := draw(t, k)
				for i := range s.holds {
					s.holds[i].at = 0
				}
				s.play(t, func(q *sim.Queue) {
					var first string
					var promised span.Instant
					q.Looked = func(at besteffort.Situation, plan besteffort.Plan) error {
						vm := firstWaiting(at)
						start := at.Now
						if e, waits := plan.Expected[vm]; waits {
							start = e.Start
						}
						if vm == first && vm != "" && start > promised {
							return fmt.Errorf("%s was promised %d, now %d", vm, promised, start)
						}
						first, promised = vm, start
						return nil
					}
				})
			})
		})
	}
}

// Unless something ends early, no later request moves a planned start that the rules protect.
func TestAPlannedStartIsKeptWhateverComesBehindIt(t *testing.T) {
	for name, k := range map[string]kind{
		"backfilled": {backfillings: besteffort.Backfillings, partial: true, overheads: true},
		"suspended":  {backfillings: besteffort.Backfillings[1:], suspend: true, partial: true, equal: true, serial: true},
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := draw(t, k)
				for i := range s.holds {
					s.holds[i].at = 0
				}
				for i := range s.work {
					s.work[i].work.Real = 0
				}
				s.play(t, func(q *sim.Queue) {
					kept := map[string]span.Instant{}
					q.Looked = func(at besteffort.Situation, plan besteffort.Plan) error {
						for vm, start := range kept {
							if e, waits := plan.Expected[vm]; waits && e.Start > start {
								return fmt.Errorf("%s was to start at %v, now at %v: %s", vm, start, e.Start, e.Reason)
							}
						}
						kept = protected(s.rules, at, plan)
						return nil
					}
				})
			})
		})
	}
}

// protected returns the planned starts of the waiting virtual machines that no later request may delay.
func protected(rules besteffort.Rules, at besteffort.Situation, plan besteffort.Plan) map[string]span.Instant {
	most := map[besteffort.Backfilling]int{besteffort.Aggressive: 1, besteffort.Intermediate: rules.Promises}[rules.Backfilling]
	starts, units := map[string]span.Instant{}, 0
	for _, r := range at.Requests {
		for i, vm := range r.VMs {
			e, waits := plan.Expected[vm.ID]
			if !waits || e.Start == span.Forever {
				continue
			}
			if !r.Parallel || i == 0 {
				units++
			}
			if most > 0 && units > most {
				return starts
			}
			starts[vm.ID] = e.Start
		}
	}
	return starts
}

// firstWaiting returns the first waiting virtual machine of the queue, in the planner's order.
func firstWaiting(s besteffort.Situation) string {
	for _, r := range s.Requests {
		for _, vm := range r.VMs {
			if vm.Phase == besteffort.Waiting || vm.Phase == besteffort.Suspended {
				return vm.ID
			}
		}
	}
	return ""
}
