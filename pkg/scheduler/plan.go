// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"math/bits"
	"slices"
	"sync"

	"github.com/almanac-cloud/almanac/filters"
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/weighers"
)

// Plan finds a host for each instance of the request, or for none. Each instance sees the resources
// used by those before it, and goes to one of the hosts that also passed for them
// (nova/scheduler/manager.py _schedule). Filters and weighers see the request for this and the
// following instances, and the hosts of the earlier ones in its server group.
//
// draw(n) returns one of 0 … n-1; the same draws return the same plan. Without draw, the first of
// equal hosts by name is chosen.
func (p *Pipeline) Plan(s *inventory.States, r *placing.Request, now span.Instant, draw func(n int) int) Plan {
	return p.Draft(s, r, now, draw).Explained()
}

// Draft plans as Plan does, and returns its work as a draft that a later plan of an equal request may
// repair.
func (p *Pipeline) Draft(s *inventory.States, r *placing.Request, now span.Instant, draw func(n int) int) *Draft {
	d := &Draft{Plan: Plan{Decision: undecided(s, r, now)}}
	if len(r.Instances) == 0 {
		return d.refused("The request contains no instance.")
	}
	w := walks.Get().(*walk)
	w.pipeline, w.now, w.draw, w.instances = p, now, draw, len(r.Instances)
	w.states, w.hosts, w.group = s, s.All().Clone(), r.Group
	d.walk = w
	picks := make([]Pick, 0, len(r.Instances))
	for n, instance := range r.Instances {
		w.setRequest(r, n)
		steps := w.filter(n)
		if n == 0 {
			w.steps = steps
		}
		if w.hosts.Count() == 0 {
			return d.refused(reason(steps, n, len(r.Instances), d.Decision.Reservation != "" || namesHost(r)))
		}
		w.findRoom()
		w.rank()
		w.sort()
		if n == 0 {
			w.noteBest()
		}
		pick, possible := w.pick(instance)
		if !possible {
			return d.refused(notEnough)
		}
		picks = append(picks, pick)
		if len(r.Instances) > 1 {
			w.explain(&d.Decision) // before the walk goes on
			w.states = w.states.WithTaken([]inventory.Take{pick.Take})
		}
	}
	if len(picks) > 1 && r.Alternates > 0 {
		// The alternates must have room beside all instances of the request.
		w.setRequest(r, len(picks)-1)
		w.filter(len(picks) - 1)
		w.findRoom()
		w.rank()
		w.sort()
	}
	w.chooseAlternates(picks)
	if p.Spares && len(picks) > 1 {
		dropNeedlessVictims(s, picks)
	}
	d.Picks = picks
	return d
}

// walk is the state of a plan between one instance of a request and the next.
type walk struct {
	pipeline  *Pipeline
	now       span.Instant
	draw      func(n int) int
	instances int // of the request
	// states, hosts and group include the instances placed so far: hosts are those that passed
	// for the last of them.
	states *inventory.States
	hosts  hostset.Set
	group  *placing.Group
	// request is the request for the next instance and those after it, among and places are the hosts
	// that are ranked, and order is the beginning of the ranking.
	request *placing.Request
	among   hostset.Set
	places  []int
	ranking weighers.Ranking
	order   []int
	// roomy are those of the hosts that need no eviction; nil without an Evictor.
	roomy hostset.Set
	// steps are the filters of the first instance, and best the beginning of its order. They are not
	// yet explained; steps is nil if they are.
	steps []step
	best  []int
}

// walks are finished walks. Their memory, almost 1 MiB with 10,000 hosts, is reused.
var walks = sync.Pool{New: func() any { return new(walk) }}

func (w *walk) end() {
	w.ranking.Forget()
	*w = walk{places: w.places, ranking: w.ranking}
	walks.Put(w)
}

// setRequest sets the request for the nth instance and those after it.
func (w *walk) setRequest(r *placing.Request, n int) {
	rest := *r
	rest.Instances, rest.Group = r.Instances[n:], w.group
	w.request = &rest
}

// filter removes the hosts that may not run the nth instance. It stops at the filter that
// leaves none (nova/filters.py get_filtered_objects).
func (w *walk) filter(n int) []step {
	steps := make([]step, 0, len(w.pipeline.Filters))
	for _, f := range w.pipeline.Filters {
		if _, once := f.(filters.Once); once && n > 0 {
			continue
		}
		next := step{filter: f, left: w.hosts.Count()}
		if next.test = f.For(w.states, w.request, w.now); next.test != nil {
			next.refused = w.hosts.Clone()
			next.test.Keep(w.hosts)
			for i, word := range w.hosts {
				w.hosts[i] &= next.refused[i] // a filter cannot add hosts
				next.refused[i] &^= word
			}
			next.left = w.hosts.Count()
		}
		if steps = append(steps, next); next.left == 0 {
			break
		}
	}
	return steps
}

// findRoom finds the hosts that need no eviction.
func (w *walk) findRoom() {
	w.roomy = nil
	if w.pipeline.Evictor == nil || w.request.Preemptible || w.request.Rebuild {
		return
	}
	w.roomy = w.hosts.Clone()
	if test := (filters.Capacity{}).For(w.states, w.request, w.now); test != nil {
		test.Keep(w.roomy)
	}
}

// chooseVictims moves the first host in order that has room, or on which enough instances can leave, to
// the front, and returns its victims.
func (w *walk) chooseVictims() (victims preemption.Victims, possible bool) {
	if w.roomy == nil {
		return victims, true
	}
	for at, host := range w.order {
		if w.roomy.Has(host) {
			putFirst(w.order, at)
			return victims, true
		}
		if victims, possible = w.pipeline.Evictor.Victims(w.states, host, w.request.Resources, w.now); possible {
			putFirst(w.order, at)
			return victims, true
		}
	}
	return victims, false
}

// pick places the instance on a host of the order; possible is false if no host makes room.
func (w *walk) pick(instance string) (p Pick, possible bool) {
	if p.Victims, possible = w.chooseVictims(); possible {
		p.Take = w.placeInstance(instance)
		p.Take.Victims = p.Victims.IDs()
	}
	return p, possible
}

// candidates returns the hosts to rank. Hosts that need an eviction are left out if others exist and
// Spares is set; they may be chosen for the next instance.
func (w *walk) candidates() hostset.Set {
	if w.pipeline.Spares && w.roomy.Count() > 0 {
		return w.roomy
	}
	return w.hosts
}

// rank ranks the candidates.
func (w *walk) rank() {
	w.among = w.candidates()
	w.places = slices.Grow(w.places[:0], w.among.Count())
	for i, word := range w.among {
		for ; word != 0; word &= word - 1 {
			w.places = append(w.places, i<<6+bits.TrailingZeros64(word))
		}
	}
	w.ranking.Rank(w.pipeline.Weighers, w.states, w.request, w.now, w.places)
}

// sort sorts the ranked hosts as far as needed for the request: its hosts, alternates, and what is
// recorded.
func (w *walk) sort() {
	subset := max(1, w.pipeline.SubsetSize)
	w.order = w.ranking.Best(max(subset, w.listed(rankedKept), w.instances+w.request.Alternates), nil)
	w.drawAmongEquals()
	if w.roomy == nil || len(w.order) > 0 && w.roomy.Has(w.order[0]) { // chance must not choose more expensive victims
		w.drawAmongFirst(min(subset, len(w.order)))
	}
}

// drawAmongEquals moves a random one of the hosts with the highest weight to the front
// (shuffle_best_same_weighed_hosts).
func (w *walk) drawAmongEquals() {
	if w.draw == nil || len(w.order) < 2 || w.ranking.Weight(w.order[0]) != w.ranking.Weight(w.order[1]) {
		return
	}
	equals := w.ranking.Equals()
	if w.pipeline.ShuffleBest {
		for i := range min(len(equals)-1, len(w.order)) {
			drawn := i + w.draw(len(equals)-i)
			equals[i], equals[drawn] = equals[drawn], equals[i]
		}
	} else {
		putFirst(equals, w.draw(len(equals)))
	}
	copy(w.order, equals)
}

// drawAmongFirst moves a random one of the first n to the front (host_subset_size).
func (w *walk) drawAmongFirst(n int) {
	if w.draw != nil && n > 1 {
		putFirst(w.order, w.draw(n))
	}
}

// putFirst moves the element at an index to the front and shifts those before it by one.
func putFirst(list []int, place int) {
	first := list[place]
	copy(list[1:place+1], list[:place])
	list[0] = first
}

// placeInstance places the instance on the first host in order, so that the next instance sees it there
// (nova/scheduler/manager.py _consume_selected_host).
func (w *walk) placeInstance(instance string) inventory.Take {
	take := inventory.Take{Host: w.order[0], Instance: instance}
	if w.request.Rebuild {
		return take
	}
	take.Resources = w.request.Resources
	if w.group != nil {
		take.Group = w.group.ID
		group := *w.group
		group.Hosts = append(slices.Clip(group.Hosts), w.states.Host(take.Host).Name)
		if !slices.Contains(group.Members, instance) {
			group.Members = append(slices.Clip(group.Members), instance)
		}
		w.group = &group
	}
	return take
}

// chooseAlternates sets the alternates of the picks, the same for all in a cell. Nova tries
// them without evictions, so only hosts with room qualify.
func (w *walk) chooseAlternates(picks []Pick) {
	if w.request.Alternates <= 0 || w.roomy != nil && w.roomy.Count() == 0 {
		return
	}
	taken := make(map[int]bool, len(picks))
	for _, p := range picks {
		taken[p.Take.Host] = true
	}
	byCell := map[string][]int{}
	for i, p := range picks {
		cell := w.states.Host(p.Take.Host).Cell
		alternates, known := byCell[cell]
		if !known {
			alternates = w.alternates(func(host int) bool {
				return !taken[host] && w.states.Host(host).Cell == cell && (w.roomy == nil || w.roomy.Has(host))
			})
			byCell[cell] = alternates
		}
		picks[i].Alternates = alternates
	}
}

// alternates returns the first suitable hosts in order. If rank has sorted too few of them, as may
// happen with several cells, it searches the others.
func (w *walk) alternates(will func(host int) bool) []int {
	var found []int
	for _, host := range w.order {
		if len(found) < w.request.Alternates && will(host) {
			found = append(found, host)
		}
	}
	if missing := w.request.Alternates - len(found); missing > 0 && len(w.order) < w.ranking.Len() {
		found = append(found, w.ranking.Best(missing, func(host int) bool { return will(host) && !slices.Contains(w.order, host) })...)
	}
	return found
}
