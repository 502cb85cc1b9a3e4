package booking

import (
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// roster maps hosts to their numbers in the calendar. A host keeps its number for
// good, also while it is away. A roster does not change.
type roster struct {
	numbers  map[string]int
	names    []string // by number
	snapshot *inventory.Snapshot
	place    []int // by number: place in the snapshot, or gone
	lineup   *lineup
	// efficient has the numbers of the hosts that are there by FLOPS per watt, then name;
	// preferred those with few scarce features first: criteria 4 to 6 of docs/concepts.md
	// "Which hosts", for requests that name none of these.
	efficient, preferred []int
	company              []company // by number
}

const gone = -1

// with gives the roster of the lineup of a newer snapshot and the capacities of the hosts that
// are new in it, in the order of their numbers.
func (r *roster) with(l *lineup) (*roster, []resource.Vector) {
	s := l.snapshot
	next := &roster{numbers: make(map[string]int, s.Len()), names: slices.Clone(r.names), snapshot: s, lineup: l}
	for number, name := range r.names {
		next.numbers[name] = number
	}
	var added []resource.Vector
	for _, h := range s.Hosts() {
		if _, known := next.numbers[h.Name]; !known {
			next.numbers[h.Name] = len(next.names)
			next.names = append(next.names, h.Name)
			added = append(added, h.Capacity)
		}
	}
	next.place = slices.Repeat([]int{gone}, len(next.names))
	next.company = make([]company, len(next.names))
	byPlace := make([]int, s.Len())
	for i, h := range s.Hosts() {
		byPlace[i] = next.numbers[h.Name]
		next.place[byPlace[i]], next.company[byPlace[i]] = i, companyOf(h)
	}
	next.efficient, next.preferred = make([]int, s.Len()), make([]int, s.Len())
	for i := range byPlace {
		next.efficient[i], next.preferred[i] = byPlace[l.efficient[i]], byPlace[l.preferred[i]]
	}
	return next, added
}

// admit returns the roster with numbers for hosts that are promised but not there, and the
// names that are new in it, in the order of their numbers.
func (r *roster) admit(names []string) (next *roster, added []string) {
	for _, name := range names {
		if _, known := r.numbers[name]; !known && !slices.Contains(added, name) {
			added = append(added, name)
		}
	}
	if len(added) == 0 {
		return r, nil
	}
	admitted := *r
	admitted.numbers = maps.Clone(r.numbers)
	if admitted.numbers == nil {
		admitted.numbers = make(map[string]int, len(added))
	}
	admitted.names, admitted.place, admitted.company = slices.Clone(r.names), slices.Clone(r.place), slices.Clone(r.company)
	for _, name := range added {
		admitted.numbers[name] = len(admitted.names)
		admitted.names = append(admitted.names, name)
		admitted.place = append(admitted.place, gone)
		admitted.company = append(admitted.company, company{})
	}
	return &admitted, added
}

// claims returns claims of r as the calendar has them.
func (r *roster) claims(of *reservation.Reservation, claims []reservation.Claim) []calendar.Claim {
	list := make([]calendar.Claim, len(claims))
	for i, c := range claims {
		list[i] = calendar.Claim{Host: r.numbers[c.Host], Span: c.Span}
		if of.Kind == reservation.Instances {
			list[i].Slice = of.Resources.Scale(int64(c.Slices))
		}
	}
	return list
}

// host gives the host of that number, nil where it is gone.
func (r *roster) host(number int) *inventory.Host {
	if r.place[number] == gone {
		return nil
	}
	return r.snapshot.Host(r.place[number])
}

// scarce returns the scarce features of a host that is there.
func (r *roster) scarce(number int) []feature { return r.lineup.scarce[r.place[number]] }

// rank is the host's place by FLOPS per watt, then name.
func (r *roster) rank(number int) int { return r.snapshot.EfficiencyRank(r.place[number]) }
