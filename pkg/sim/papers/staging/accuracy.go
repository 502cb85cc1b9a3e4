// SPDX-License-Identifier: Apache-2.0

package staging

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/staging"
)

// plan is a way to schedule the transfers of the images of reservations.
type plan string

// The plans. The first three are the service's own, which send one image after the other. The other
// three stand for simpler systems, whose transfers share the channel (thesis, section 8.1).
const (
	planEDF         plan = "EDF"
	planEDFJIT      plan = "EDF/JIT"
	planMargin      plan = "EDF/JIT, margin" // with a margin before the deadline of the time for one image
	planAggressive  plan = "aggressive"      // each from its submission
	planJustInTime  plan = "just in time"    // each as long before its start as it takes alone
	planUnscheduled plan = "unscheduled"     // each from its start
)

var plans = []plan{planEDF, planEDFJIT, planMargin, planAggressive, planJustInTime, planUnscheduled}

// errand is a transfer in a trace: an image that one virtual machine of a reservation needs on a
// node.
type errand struct {
	wish
	name    string
	node    int
	seconds float64      // duration of the transfer, alone in the channel
	arrived span.Instant // filled in by a plan
}

// share returns the share of its reserved time in which the virtual machine had its image.
func (e *errand) share() float64 {
	late := max(0, float64(int64(e.arrived)-e.start))
	return max(0, 1-late/float64(e.duration))
}

// served is the result of a trace under a plan.
type served struct {
	mean, worst float64
	whole       float64 // the share of virtual machines that had all of their time
	errands     []errand
}

// estimate returns the planner's estimate for the transfer of an image on the testbed, in seconds.
func (o *Options) estimate() int64 {
	return int64(math.Ceil(float64(o.ImageSize)/o.Measured.Estimate)) + o.Measured.Extra
}

// testbed returns the testbed's channel as the planner models it.
func (o *Options) testbed(strategy staging.Strategy) staging.Site {
	return staging.Site{Strategy: strategy, Repositories: []staging.Repository{{Name: "repository", Rate: float64(o.ImageSize*megabyte) / float64(o.estimate())}}}
}

func (o *Options) image(id string) staging.Image {
	return staging.Image{ID: id, Size: o.ImageSize * megabyte}
}

// errands generates the image transfers of a trace, in the order of submission. As in the thesis,
// it keeps only transfers that the service would admit if it knew all of them at time 0.
func (o *Options) errands(t accuracyTrace, run int) (all []errand) {
	chance := sim.Chance(o.Seed, Accuracy, t.name, run)
	site, state, node := o.testbed(staging.EDF), staging.State{}, 0
	for n, w := range t.wishes(chance, o.estimate()) {
		name := fmt.Sprint(n)
		demand := staging.Demand{ID: name, Span: span.New(span.Instant(w.start), w.duration)}
		var asked []errand
		for i := range w.vms {
			e := errand{wish: w, name: fmt.Sprintf("%s/%d", name, i), node: (node + i) % o.Nodes, seconds: o.really(chance)}
			demand.Image, demand.Nodes = o.image(e.name), []string{nodeName(e.node)}
			after, err := state.Admit(site, 0, demand)
			if err != nil {
				break
			}
			state, asked = after, append(asked, e)
		}
		node += w.vms
		all = append(all, asked...)
	}
	slices.SortStableFunc(all, func(a, b errand) int { return cmp.Compare(a.submitted, b.submitted) })
	return all
}

// really draws how many seconds a transfer takes on the testbed when it has the channel for itself.
func (o *Options) really(chance *rand.Rand) float64 {
	return float64(o.ImageSize) / o.Measured.Rate * math.Exp(o.Measured.Spread*chance.NormFloat64())
}

func nodeName(n int) string { return fmt.Sprintf("n%04d", n) }

// serve transfers the images of a trace as the plan determines.
func (o *Options) serve(errands []errand, p plan) served {
	errands = slices.Clone(errands)
	switch p {
	case planEDF:
		inTurn(errands, o.testbed(staging.EDF), o.ImageSize*megabyte)
	case planEDFJIT:
		inTurn(errands, o.testbed(staging.JIT), o.ImageSize*megabyte)
	case planMargin:
		site := o.testbed(staging.JIT)
		site.Margin = o.estimate()
		inTurn(errands, site, o.ImageSize*megabyte)
	default:
		together(errands, func(e *errand) float64 {
			switch p {
			case planAggressive:
				return float64(e.submitted)
			case planJustInTime:
				return float64(max(e.submitted, e.start-int64(e.vms)*o.estimate()))
			}
			return float64(e.start)
		})
	}
	s := served{worst: 1, errands: errands}
	for i := range errands {
		share := errands[i].share()
		s.mean += share / float64(len(errands))
		s.worst = min(s.worst, share)
		if share == 1 {
			s.whole += 1 / float64(len(errands))
		}
	}
	return s
}

// inTurn transfers one image after the other, in the order of the service's schedule. errands are
// sorted by submission.
func inTurn(errands []errand, site staging.Site, size int64) {
	state, asked := staging.State{}, 0
	for now := span.Instant(0); asked < len(errands) || len(state.Transfers) > 0; {
		for ; asked < len(errands) && span.Instant(errands[asked].submitted) <= now; asked++ {
			state.Transfers = append(state.Transfers, errands[asked].transfer(asked, size))
		}
		following := span.Forever
		if asked < len(errands) {
			following = span.Instant(errands[asked].submitted)
		}
		state.At = now
		scheduled, _ := state.Schedule(site, now)
		if len(scheduled) == 0 || scheduled[0].Start > now {
			if now = following; len(scheduled) > 0 {
				now = min(now, scheduled[0].Start)
			}
			continue
		}
		id := scheduled[0].ID
		e := &errands[slices.IndexFunc(errands, func(e errand) bool { return e.name == id })]
		e.arrived = now.Add(int64(math.Ceil(e.seconds)))
		state.Transfers = slices.DeleteFunc(state.Transfers, func(t staging.Transfer) bool { return t.ID == id })
		now = e.arrived
	}
}

// transfer returns the errand as a transfer for the planner.
func (e *errand) transfer(n int, size int64) staging.Transfer {
	return staging.Transfer{
		ID: e.name, Image: staging.Image{ID: e.name, Size: size}, Node: nodeName(e.node), Deadline: span.Instant(e.start),
		Entered: int64(n), Expire: span.New(span.Instant(e.start), e.duration).End,
	}
}

// together transfers each image from its start on; transfers that run at the same time share the
// channel equally.
func together(errands []errand, start func(*errand) float64) {
	type sending struct {
		*errand
		from, left float64 // seconds of the whole channel
	}
	all := make([]sending, len(errands))
	for i := range errands {
		all[i] = sending{&errands[i], start(&errands[i]), errands[i].seconds}
	}
	slices.SortStableFunc(all, func(a, b sending) int { return cmp.Compare(a.from, b.from) })
	now, begun := 0.0, 0
	var under []*sending
	for begun < len(all) || len(under) > 0 {
		if len(under) == 0 {
			now = all[begun].from
		}
		for ; begun < len(all) && all[begun].from <= now; begun++ {
			under = append(under, &all[begun])
		}
		shortest := slices.MinFunc(under, func(a, b *sending) int { return cmp.Compare(a.left, b.left) }).left
		next := now + shortest*float64(len(under))
		if begun < len(all) {
			next = min(next, all[begun].from)
		}
		done := (next - now) / float64(len(under))
		now = next
		under = slices.DeleteFunc(under, func(s *sending) bool {
			if s.left -= done; s.left > 1e-6 {
				return false
			}
			s.arrived = span.Instant(math.Ceil(now - 1e-6))
			return true
		})
	}
}
