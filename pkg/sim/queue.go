// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/besteffort"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// Queue runs best-effort requests on a Timeline. The service's planner decides; the Queue carries
// out its plans, and every operation takes exactly the time that the rules assume. Images is the
// channel through which images reach the nodes. A caller that also simulates the image pools of
// reservations may change Images between events and must call Look afterwards.
type Queue struct {
	Timeline *Timeline
	Images   staging.Queue
	// Happened is called for each virtual machine that enters a phase; nil means no call.
	Happened func(Change) error
	// Looked is called with each plan before the Queue carries it out; nil means no call.
	Looked func(besteffort.Situation, besteffort.Plan) error

	options  QueueOptions
	holds    map[string][]besteffort.Hold
	requests map[string]*besteffort.Request
	order    []string // requests that have not ended
	machines map[string]*machine
	outcomes []*Outcome
	last     besteffort.Plan
	looking  bool
	due      span.Instant // of the next scheduled look
	stuck    int
	stuckAt  span.Instant
	transfer int
}

// QueueOptions configure a Queue.
type QueueOptions struct {
	Rules  besteffort.Rules
	Nodes  []besteffort.Node
	Images staging.Queue
	// Keep is how many seconds an image stays on its node after its transfer. With 0 each virtual
	// machine has its own transfer; with KeepForever images are never deleted.
	Keep int64
}

// KeepForever is the Keep of images that are never deleted.
const KeepForever = int64(span.Forever)

// Work is a best-effort request and the real run time of its virtual machines.
type Work struct {
	besteffort.Request
	// Real is how many seconds each virtual machine runs before it ends by itself. With 0, or
	// at least the Duration of the request, it runs until it is stopped.
	Real int64
}

// Change is the entry of a virtual machine into a phase.
type Change struct {
	At          span.Instant
	Request, VM string
	Phase       besteffort.Phase
	Node        string
}

// Outcome is the history of a virtual machine.
type Outcome struct {
	Request, VM string
	Submitted   span.Instant
	Pieces      []Piece
	Ended       span.Instant // Forever until it has ended
	Ran         int64        // seconds in all
	Moves       int
}

// Piece is a period in which a virtual machine has a node.
type Piece struct {
	Name string    // of the node
	Node span.Span // from its start or resumption until it is suspended or has ended
	Runs span.Span // when it runs
}

// machine is a virtual machine that has not ended.
type machine struct {
	request *besteffort.Request
	vm      *besteffort.VM
	real    int64
	outcome *Outcome
	turn    int // number of its phase; scheduled events of other turns are void
}

// NewQueue returns an empty queue.
func NewQueue(t *Timeline, o QueueOptions) (*Queue, error) {
	if err := o.Rules.Check(); err != nil {
		return nil, err
	}
	return &Queue{
		Timeline: t, Images: o.Images, options: o, due: span.Forever,
		holds: map[string][]besteffort.Hold{}, requests: map[string]*besteffort.Request{}, machines: map[string]*machine{},
	}, nil
}

// Submit adds a request at the present instant. It sets Submitted, the phases of the virtual
// machines, and Place if that is 0. The IDs of virtual machines must be unique in the Queue.
func (q *Queue) Submit(w Work) {
	r := w.Request
	r.Submitted = q.Timeline.Now()
	if r.Place == 0 {
		r.Place = int64(len(q.outcomes)) + 1
	}
	r.VMs = slices.Clone(w.VMs)
	q.requests[r.ID], q.order = &r, append(q.order, r.ID)
	for i := range r.VMs {
		vm := &r.VMs[i]
		*vm = besteffort.VM{ID: vm.ID, Phase: besteffort.Waiting, Since: r.Submitted}
		outcome := &Outcome{Request: r.ID, VM: vm.ID, Submitted: r.Submitted, Ended: span.Forever}
		q.outcomes = append(q.outcomes, outcome)
		q.machines[vm.ID] = &machine{request: &r, vm: vm, real: w.Real, outcome: outcome}
	}
	q.Look()
}

// Hold replaces what a reservation holds on nodes.
func (q *Queue) Hold(reservation string, holds ...besteffort.Hold) {
	q.holds[reservation] = holds
	q.Look()
}

// Release removes everything that a reservation holds on nodes.
func (q *Queue) Release(reservation string) {
	delete(q.holds, reservation)
	q.Look()
}

// Outcomes returns the histories of all virtual machines in the order of submission.
func (q *Queue) Outcomes() []*Outcome { return q.outcomes }

// Left returns the number of virtual machines that have not ended.
func (q *Queue) Left() int { return len(q.machines) }

// Planned returns the most recent plan.
func (q *Queue) Planned() besteffort.Plan { return q.last }

// Situation returns the input of the planner for the next plan, as a copy.
func (q *Queue) Situation() besteffort.Situation {
	now := q.Timeline.Now()
	s := besteffort.Situation{Now: now, Nodes: q.options.Nodes, Images: q.Images}
	for _, id := range slices.Sorted(maps.Keys(q.holds)) {
		for _, h := range q.holds[id] {
			if h.Span.End > now {
				s.Holds = append(s.Holds, h)
			}
		}
	}
	for _, id := range q.order {
		r := *q.requests[id]
		r.VMs = slices.Clone(r.VMs)
		s.Requests = append(s.Requests, r)
	}
	return s
}

// Look schedules the next plan, after all other events of the present instant.
func (q *Queue) Look() {
	if !q.looking {
		q.looking = true
		q.Timeline.After(0, Looking, q.look)
	}
}

// mostLooks is the number of plans at one instant from which the Queue assumes an endless loop.
const mostLooks = 10_000

func (q *Queue) look() error {
	q.looking = false
	now := q.Timeline.Now()
	if now != q.stuckAt {
		q.stuckAt, q.stuck = now, 0
	}
	if q.stuck++; q.stuck > mostLooks {
		return fmt.Errorf("the planner of best-effort work does not terminate at one instant: %+v", q.last.Acts)
	}
	situation := q.Situation()
	q.last = q.options.Rules.Plan(situation)
	if q.Looked != nil {
		if err := q.Looked(situation, q.last); err != nil {
			return err
		}
	}
	for _, t := range q.last.Transfers {
		q.send(t)
	}
	for _, act := range q.last.Acts {
		if err := q.carryOut(act); err != nil {
			return err
		}
	}
	if next := q.last.Next; next != span.Forever && (next < q.due || q.due <= now) {
		q.due = max(next, now.Add(1))
		q.Timeline.At(q.due, Looking, func() error { q.Look(); return nil })
	}
	return nil
}

// send starts a transfer. After the transfer, the image stays on its node as Keep determines.
func (q *Queue) send(t staging.Transfer) {
	q.transfer++
	t.ID = fmt.Sprintf("%s/%d", t.Image.ID, q.transfer)
	q.Images = q.Images.With(t)
	sent := q.Images.Transfers[len(q.Images.Transfers)-1]
	q.Timeline.At(sent.End, Ending, func() error { q.arrive(sent); return nil })
}

func (q *Queue) arrive(t staging.Transfer) {
	q.Images.Transfers = slices.DeleteFunc(slices.Clone(q.Images.Transfers), func(o staging.Transfer) bool { return o.ID == t.ID })
	if q.options.Keep > 0 {
		now := q.Timeline.Now()
		pools := maps.Clone(q.Images.Pools)
		if pools == nil {
			pools = map[string][]staging.Entry{}
		}
		kept := slices.DeleteFunc(slices.Clone(pools[t.Node]), func(e staging.Entry) bool { return e.Expire <= now || e.Image.ID == t.Image.ID })
		pools[t.Node] = append(kept, staging.Entry{Image: t.Image, From: now, Expire: now.Add(q.options.Keep)})
		q.Images.Pools = pools
	}
	q.Look()
}

// begun contains, for each action, the phase that it begins and the phase that follows when it is
// over.
var begun = map[besteffort.Action]struct{ begun, over besteffort.Phase }{
	besteffort.Stage:   {besteffort.Staging, besteffort.Staging},
	besteffort.Start:   {besteffort.Starting, besteffort.Running},
	besteffort.Suspend: {besteffort.Suspending, besteffort.Suspended},
	besteffort.Move:    {besteffort.Moving, besteffort.Suspended},
	besteffort.Resume:  {besteffort.Resuming, besteffort.Running},
	besteffort.Stop:    {besteffort.Stopping, besteffort.Done},
}

// carryOut begins an act of a plan and schedules its end.
func (q *Queue) carryOut(act besteffort.Act) error {
	m, known := q.machines[act.VM]
	phases, sound := begun[act.Action]
	if !known || !sound {
		return fmt.Errorf("the plan has an act that cannot be carried out: %+v", act)
	}
	if act.Action == besteffort.Move {
		m.outcome.Moves++
	}
	m.turn++
	if err := q.enter(m, phases.begun, act.Node, act.Until); err != nil {
		return err
	}
	turn := m.turn
	q.Timeline.At(act.Until, Ending, func() error {
		if m.turn != turn {
			return nil
		}
		return q.enter(m, phases.over, act.Node, 0)
	})
	return nil
}

// enter changes the phase of a virtual machine, updates its Outcome and schedules a plan.
func (q *Queue) enter(m *machine, phase besteffort.Phase, node string, until span.Instant) error {
	now, vm, o := q.Timeline.Now(), m.vm, m.outcome
	if vm.Phase == besteffort.Running {
		vm.Ran += int64(now - vm.Since)
		o.Ran, o.Pieces[len(o.Pieces)-1].Runs.End = vm.Ran, now
	}
	switch phase {
	case besteffort.Starting, besteffort.Resuming:
		o.Pieces = append(o.Pieces, Piece{Name: node, Node: span.Span{Start: now, End: span.Forever}})
	case besteffort.Running:
		o.Pieces[len(o.Pieces)-1].Runs = span.Span{Start: now, End: span.Forever}
		until = now.Add(m.request.Duration - vm.Ran)
	case besteffort.Suspended, besteffort.Done:
		if vm.Phase != besteffort.Moving {
			o.Pieces[len(o.Pieces)-1].Node.End = now
		}
	}
	if phase != vm.Phase {
		m.turn++
		vm.Since = now
	}
	vm.Phase, vm.Node, vm.Until = phase, cmp.Or(node, vm.Node), until
	switch phase {
	case besteffort.Staging:
		vm.Until = max(until, vm.Since)
	case besteffort.Running:
		q.endEarly(m)
	case besteffort.Done:
		q.finish(m)
	}
	q.Look()
	if q.Happened == nil {
		return nil
	}
	return q.Happened(Change{At: now, Request: m.request.ID, VM: vm.ID, Phase: phase, Node: vm.Node})
}

// endEarly schedules the end of a running virtual machine that ends by itself.
func (q *Queue) endEarly(m *machine) {
	if m.real <= 0 || m.real >= m.request.Duration {
		return
	}
	turn := m.turn
	q.Timeline.After(max(0, m.real-m.vm.Ran), Ending, func() error {
		if m.turn != turn {
			return nil
		}
		return q.enter(m, besteffort.Done, "", 0)
	})
}

// finish removes a virtual machine that has ended, and its request with the last one.
func (q *Queue) finish(m *machine) {
	m.outcome.Ended = q.Timeline.Now()
	delete(q.machines, m.vm.ID)
	if !slices.ContainsFunc(m.request.VMs, func(vm besteffort.VM) bool { return vm.Phase != besteffort.Done }) {
		delete(q.requests, m.request.ID)
		q.order = slices.DeleteFunc(q.order, func(id string) bool { return id == m.request.ID })
	}
}
