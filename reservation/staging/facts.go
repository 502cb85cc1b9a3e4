package staging

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Facts are what a service has seen of images. What is to be transferred is not among
// them: it follows from the facts and from what is reserved, so that all replicas with the
// same facts and reservations have the same transfers in mind, and none is stored. Nobody
// changes facts that have been published.
type Facts struct {
	Site Site
	// Images are those whose size is known, by id.
	Images map[string]Image
	// Pools are what hosts have, by host name, each until it may be gone when nobody needs
	// it. Of an image that is on its way only Running tells.
	Pools map[string][]Entry
	// Running are the transfers under way: Started, with the Start, the expected End, and
	// the deadline and expiry that they had when they began. One that has not started is
	// entered as it is.
	Running []Transfer
}

// Image gives the image of that id; known is false where its size is not known.
func (f *Facts) Image(id string) (i Image, known bool) {
	i, known = f.Images[id]
	i.ID = id
	return i, known
}

// State gives what the pools will have, and which transfers are needed, for the demands,
// which are in the order in which they were made. The one with the earliest start comes
// first, so that one transfer to a node serves all that need the image there later. A
// demand that began before now keeps the images that are there, and needs no transfer any
// more, unless it is Joining. Some transfers may not be possible in time.
func (f *Facts) State(now span.Instant, demands []Demand) State {
	demands = inOrder(demands)
	return f.state(now, demands, demands)
}

func inOrder(demands []Demand) []Demand {
	demands = slices.Clone(demands)
	slices.SortStableFunc(demands, func(a, b Demand) int { return cmp.Compare(a.Span.Start, b.Span.Start) })
	return demands
}

// state is State for demands by start; what joins late is looked for in joining.
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

// joinTime is for how many seconds a node that joins late is to be given its image.
const joinTime = 3600

// Wants says that transfers are made for a demand: before it begins, and for a while where
// it is Joining, though not for so long that the image could have come and gone again.
func (f *Facts) Wants(now span.Instant, d Demand) bool {
	until := int64(0)
	if d.Joining {
		if until = joinTime; f.Site.Lifetime > 0 {
			until = min(until, f.Site.Lifetime)
		}
	}
	return now < d.Span.Start.Add(until) && now < d.Span.End
}

// Admission lets further demands be decided on. Admit gives the state of all with one more,
// as State.Admit does.
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
