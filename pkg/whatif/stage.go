// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// StageQuestion asks whether virtual machines can be reserved so that their image is on their nodes
// when they start (paper 000). Times are whole numbers and sizes are numbers, each in any unit;
// Bandwidth is in units of size per unit of time.
type StageQuestion struct {
	Now       int64       `json:"now"`
	Bandwidth *float64    `json:"bandwidth"`
	Strategy  string      `json:"strategy"` // empty is edf
	PoolLimit float64     `json:"pool_limit"`
	Nodes     []StageNode `json:"nodes"`
	// Pending are the transfers that are already scheduled.
	Pending []StagePending `json:"pending"`
	// Request is nil if the question is only whether the pending transfers end before their
	// deadlines.
	Request *StageRequest `json:"request"`
}

// StageNode is a node with its promised resources and the images in its pool.
type StageNode struct {
	Name      string           `json:"name"`
	Capacity  *StageResources  `json:"capacity"`
	Committed []StageCommitted `json:"committed"`
	Pool      []StageImage     `json:"pool"`
}

// StageResources are amounts of resources; CPU and Memory are other names for VCPUs and MemoryMB.
type StageResources struct {
	VCPUs    *int64           `json:"vcpus"`
	CPU      *int64           `json:"cpu"`
	MemoryMB *int64           `json:"memory_mb"`
	Memory   *int64           `json:"memory"`
	DiskGB   int64            `json:"disk_gb"`
	Custom   map[string]int64 `json:"custom"`
}

// StageCommitted are the resources of a node that others occupy during [Start, End).
type StageCommitted struct {
	Start     *int64          `json:"start"`
	End       int64           `json:"end"`
	Resources *StageResources `json:"resources"`
}

// StageImage is an image that is on a node until it expires.
type StageImage struct {
	Image  string   `json:"image"`
	Expire *int64   `json:"expire"`
	Size   *float64 `json:"size"` // nil is the size of that image elsewhere, or of the request's image
}

// StagePending is a transfer that must end by its deadline.
type StagePending struct {
	ID       string   `json:"id"`
	Image    string   `json:"image"`
	Node     string   `json:"node"`
	Duration *int64   `json:"duration"`
	Deadline *int64   `json:"deadline"`
	Size     *float64 `json:"size"`   // nil is bandwidth times duration
	Expire   *int64   `json:"expire"` // nil is the deadline
	Start    *int64   `json:"start"`  // when it began; nil if it has not
}

// StageRequest asks for VMs with equal resources, all during [Start, End).
type StageRequest struct {
	VMs       *int            `json:"vms"`
	Resources *StageResources `json:"resources"`
	Image     string          `json:"image"` // empty requires none
	Size      *float64        `json:"size"`
	Start     *int64          `json:"start"`
	End       *int64          `json:"end"`
}

// StageAnswer contains the nodes of the VMs and the transfers of their image, or the reason of the
// refusal: resources, pool or transfer. A refused request changes nothing.
type StageAnswer struct {
	Accepted bool   `json:"accepted"`
	Reason   string `json:"reason,omitempty"`
	// Placement is the number of VMs on each node, by the name of the node, without nodes that have
	// none.
	Placement map[string]int `json:"placement"`
	// Transfers are all unfinished transfers, sorted by start, then id.
	Transfers []StageTransfer `json:"transfers"`
	// Pool contains, by node, the images that are or will be there, each once, sorted by name.
	Pool map[string][]StagePooled `json:"pool"`
}

// StageTransfer is the scheduled transfer of an image to a node.
type StageTransfer struct {
	ID       string `json:"id"`
	Image    string `json:"image"`
	Node     string `json:"node"`
	Start    int64  `json:"start"`
	End      int64  `json:"end"`
	Deadline int64  `json:"deadline"`
}

// StagePooled is an image on a node, with the time until which it is needed.
type StagePooled struct {
	Image  string `json:"image"`
	Expire int64  `json:"expire"`
}

// The reasons of a refusal.
const (
	stageResources = "resources"
	stagePool      = "pool"
	stageTransfer  = "transfer"
)

// Stage answers the question in r. Errors are Invalid faults that name the field; a refusal is an
// answer, with a nil error.
func Stage(r io.Reader) (StageAnswer, error) {
	var q StageQuestion
	if err := read(r, &q); err != nil {
		return StageAnswer{}, err
	}
	if err := q.check(); err != nil {
		return StageAnswer{}, err
	}
	facts, err := q.facts()
	if err != nil {
		return StageAnswer{}, err
	}
	if q.Request == nil {
		return q.pendingAlone(facts), nil
	}
	view, err := q.view(facts)
	if err != nil {
		return StageAnswer{}, err
	}
	plan, err := planning.NewPlan(view, q.Request.reservation(q.shifted))
	refusal, refused := errors.AsType[*reservation.Refusal](err)
	switch {
	case refused:
		a := q.answer(facts, facts.State(view.Now, nil))
		a.Reason = stageReason(refusal.Constraint)
		return a, nil
	case err != nil:
		return StageAnswer{}, fmt.Errorf("plan the request: %w", err)
	}
	state := facts.State(view.Now, nil)
	if plan.Images != nil {
		state = plan.Images()
	}
	a := q.answer(facts, state)
	a.Accepted = true
	for _, c := range plan.Claims {
		a.Placement[c.Host] += c.Slices
	}
	return a, nil
}

// pendingAlone answers whether the pending transfers end before their deadlines.
func (q *StageQuestion) pendingAlone(f *staging.Facts) StageAnswer {
	now := q.shifted(q.Now)
	state := f.State(now, nil)
	a := q.answer(f, state)
	_, late := state.Schedule(f.Site, now)
	if a.Accepted = len(late) == 0; a.Accepted {
		return a
	}
	a.Reason = stageTransfer
	unbound := f.Site
	unbound.Limit = 0
	if _, late := state.Schedule(unbound, now); len(late) == 0 {
		a.Reason = stagePool
	}
	return a
}

// stageReason returns the answer's word for the constraint of a refusal.
func stageReason(c reservation.Constraint) string {
	switch c {
	case reservation.ImageTransfer:
		return stageTransfer
	case reservation.ImagePool:
		return stagePool
	default:
		return stageResources
	}
}

// shifted returns a time of the question as an instant: now becomes instant 1, because the zero
// instant means "absent".
func (q *StageQuestion) shifted(t int64) span.Instant { return span.Instant(t-q.Now) + 1 }

// unshifted is the inverse of shifted.
func (q *StageQuestion) unshifted(i span.Instant) int64 { return int64(i-1) + q.Now }

// reservation returns the request for instances that the question stands for. at turns the question's
// seconds into instants.
func (r *StageRequest) reservation(at func(int64) span.Instant) reservation.Request {
	return reservation.Request{
		Terms: reservation.Terms{
			Kind: reservation.Instances, Quantity: *r.VMs, Resources: r.Resources.vector(),
			Affinity: calendar.AffinityNone, Image: r.Image,
		},
		Start: at(*r.Start), End: at(*r.End),
	}
}

// view returns the nodes of the question in the form that booking reads.
func (q *StageQuestion) view(f *staging.Facts) (planning.View, error) {
	hosts := make([]inventory.Host, len(q.Nodes))
	var held []planning.Hold
	var fields []string
	for i, n := range q.Nodes {
		hosts[i] = inventory.Host{Name: n.Name, Reservable: true, Capacity: n.Capacity.vector()}
		for j, c := range n.Committed {
			held = append(held, planning.Hold{
				Host: n.Name, Span: span.Span{Start: q.shifted(*c.Start), End: q.shifted(c.End)}, Resources: c.Resources.vector(),
			})
			fields = append(fields, fmt.Sprintf("nodes[%d].committed[%d].resources", i, j))
		}
	}
	snapshot, err := inventory.NewSnapshot(hosts, nil, nil)
	if err != nil {
		return planning.View{}, fault.Field("nodes", "do not form an inventory: %v", err)
	}
	view, err := planning.NewView(q.shifted(q.Now), snapshot, held)
	if wrong, is := errors.AsType[*planning.HoldError](err); is {
		return view, fault.Field(fields[wrong.Index], "exceed the node's free resources at that time")
	}
	view.Images = &planning.Images{Facts: f, Accepted: func(now span.Instant) *staging.Accepted { return f.Accepted(now, nil) }}
	return view, err
}

// answer returns the transfers and the images of a state, without a placement.
func (q *StageQuestion) answer(f *staging.Facts, s staging.State) StageAnswer {
	a := StageAnswer{Placement: map[string]int{}, Transfers: []StageTransfer{}, Pool: map[string][]StagePooled{}}
	all, _ := s.Schedule(f.Site, s.At)
	for _, t := range all {
		a.Transfers = append(a.Transfers, StageTransfer{
			ID: t.ID, Image: t.Image.ID, Node: t.Node,
			Start: q.unshifted(t.Start), End: q.unshifted(t.End), Deadline: q.unshifted(t.Deadline),
		})
		s.Pools[t.Node] = append(s.Pools[t.Node], staging.Entry{Image: t.Image, Expire: t.Expire})
	}
	slices.SortFunc(a.Transfers, func(a, b StageTransfer) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.ID, b.ID)) })
	for _, n := range q.Nodes {
		a.Pool[n.Name] = q.pooled(s.Pools[n.Name])
	}
	return a
}

// pooled returns each image once, with its latest expiry.
func (q *StageQuestion) pooled(entries []staging.Entry) []StagePooled {
	slices.SortFunc(entries, func(a, b staging.Entry) int {
		return cmp.Or(cmp.Compare(a.Image.ID, b.Image.ID), cmp.Compare(b.Expire, a.Expire))
	})
	list := []StagePooled{}
	for i, e := range entries {
		if i == 0 || e.Image.ID != entries[i-1].Image.ID {
			list = append(list, StagePooled{e.Image.ID, q.unshifted(e.Expire)})
		}
	}
	return list
}
