// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/reservation"
)

// A decision on a lease makes many searches, one for each of its reservations at each start that it tries,
// a decision on offers some for each alternative, and one that moves reservations some for each of these. mostLooked is how many hosts they may look at before no
// further start is tried; the first one always is. That takes about a second. The facts of a refusal may take
// explaining times as much.
const (
	mostLooked = 1_000_000
	explaining = 4
)

// effort is what the searches of one decision on a lease, on offers or with moves share. A nil *effort has no end.
type effort struct {
	left    int // hosts
	filters map[string]*filtered
}

// filtered is a filter with the hosts of the pool that pass it; see search.match.
type filtered struct {
	filter *inventory.Filter
	match  *[2]hostset.Set
}

func unshared(filter *inventory.Filter) *filtered { return &filtered{filter, new([2]hostset.Set)} }

// bounded returns the view for one decision with many searches, unless it is for one already.
func (v View) bounded(most int) View {
	if v.effort == nil {
		v.effort = &effort{left: most, filters: make(map[string]*filtered)}
	}
	return v
}

// look counts hosts that are looked at.
func (e *effort) look(hosts int) {
	if e != nil {
		e.left -= hosts
	}
}

// over reports whether all hosts that the decision may look at are counted.
func (e *effort) over() bool { return e != nil && e.left <= 0 }

// slicesCost is how many times a search for whole hosts one for instances costs.
const slicesCost = 4

// look counts searches of a kind that follow, and reports whether there was effort left for them.
func (v View) look(kind reservation.Kind, searches int) bool {
	over := v.effort.over()
	if kind == reservation.Instances {
		searches *= slicesCost
	}
	v.effort.look(searches * len(v.Hosts.names))
	return !over
}

// parsed returns the filter of a request, and the hosts that pass it as far as they are known already.
func (v View) parsed(a request) (*filtered, error) {
	shares := v.effort != nil && !a.Maintenance // which may have the hosts that it names
	if shares && v.effort.filters[a.HostProperties] != nil {
		return v.effort.filters[a.HostProperties], nil
	}
	filter, err := inventory.ParseFilter([]byte(a.HostProperties), v.Hosts.snapshot, v.SeesHidden)
	if err != nil {
		return nil, err
	}
	f := unshared(filter)
	if shares {
		v.effort.filters[a.HostProperties] = f
	}
	return f, nil
}
