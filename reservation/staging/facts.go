package staging

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Facts are what a service has observed of images. They do not contain future transfers: those
// follow from the facts and the reservations. So replicas with the same facts and reservations plan
// the same transfers, and none need be stored. Published facts never change.
type Facts struct {
	Site Site
	// Images are the images of known size, by id.
	Images map[string]Image
	// Pools are the images that hosts have, by host name, each until the host may drop it when
	// unused. An image that is on its way appears only in Running.
	Pools map[string][]Entry
	// Running are the transfers under way: Started, with the Start, the expected End, and the
	// deadline and expiry that they had when they began. A transfer that has not started is entered
	// unchanged.
	Running []Transfer
}

// Image returns the image with that id; known is false where its size is unknown.
func (f *Facts) Image(id string) (i Image, known bool) {
	i, known = f.Images[id]
	i.ID = id
	return i, known
}

// State returns what the pools will have and which transfers the demands need. The demands are in
// the order in which they were made. State enters the one with the earliest start first, so that
// one transfer to a node serves all that need the image there later. A demand that began before now
// keeps the images that are there and needs no further transfer, unless it is Joining. Some
// transfers may be impossible in time.
func (f *Facts) State(now span.Instant, demands []Demand) State {
	demands = inOrder(demands)
	return f.state(now, demands, demands)
}

func inOrder(demands []Demand) []Demand {
	demands = slices.Clone(demands)
	slices.SortStableFunc(demands, func(a, b Demand) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
	return demands
}

// state is State for demands ordered by start; it takes late joiners from joining.
func (f *Facts) state(now span.Instant, demands, joining []Demand) State {
	d := newDraft(State{At: now, Transfers: f.Running, Pools: f.Pools}.without(now), f.Site, len(demands))
	for _, demand := range demands {
		d.enter(demand)
	}
	for _, demand := range joining {
		if demand.Joining && demand.Span.Start <= now && f.Wants(now, demand) {
			d.enterLate(demand)
		}
	}
	return d.State
}

// joinTime is for how many seconds after the start a node that joins late may still get its image.
const joinTime = 3600

// Wants reports whether a demand needs transfers: before it begins, and for a while afterwards if
// it is Joining. That while ends before the image could have arrived and expired again.
func (f *Facts) Wants(now span.Instant, d Demand) bool {
	until := int64(0)
	if d.Joining {
		if until = joinTime; f.Site.Lifetime > 0 {
			until = min(until, f.Site.Lifetime)
		}
	}
	return now < d.Span.Start.Add(until) && now < d.Span.End
}

// Admission returns an Admission for further demands beside these. Its Admit returns the state of
// all demands with one more, as State.Admit does.
func (f *Facts) Admission(now span.Instant, demands []Demand) *Admission {
	demands = inOrder(demands)
	return newAdmission(f.Site, f.state(now, demands, demands), func(d Demand) State {
		after, _ := slices.BinarySearchFunc(demands, d.Span.Start+1, func(d Demand, start span.Instant) int {
			return cmp.Compare(d.Span.Start, start)
		})
		all := make([]Demand, 0, len(demands)+1)
		all = append(append(append(all, demands[:after]...), d), demands[after:]...)
		return f.state(now, all, demands)
	})
}
