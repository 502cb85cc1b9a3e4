package booking

import (
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// never reports whether the hosts that match, now or later, have too little room for what is
// asked for even where nothing is promised. Then neither claims nor the time stand in the way.
func (s *search) never() bool {
	for _, hosts := range []hostset.Set{s.query.Hosts, s.matching(true)} {
		if s.roomOfEmpty(hosts) >= s.ask.Quantity {
			return false
		}
	}
	return true
}

// roomOfEmpty returns how many hosts or instances the hosts could hold if nothing were
// promised, at most as many as are asked for.
func (s *search) roomOfEmpty(hosts hostset.Set) int {
	if s.ask.Kind == reservation.Hosts {
		return min(hosts.Count(), s.ask.Quantity)
	}
	total := int64(0)
	for number := range hosts.All() {
		times := min(s.view.roster.host(number).Capacity.Times(s.ask.Resources), int64(s.ask.Quantity))
		switch s.ask.Affinity {
		case calendar.AffinitySame:
			total = max(total, times)
		case calendar.AffinityDifferent:
			total += min(times, 1)
		default:
			total += times
		}
	}
	return int(min(total, int64(s.ask.Quantity)))
}

// tooSmall says in a sentence why the hosts could not hold the instances even if nothing were
// promised.
func (s *search) tooSmall(hosts hostset.Set) string {
	which := ""
	if s.ask.HostProperties != "" {
		which = " that matches host_properties"
	}
	room := s.roomOfEmpty(hosts)
	switch {
	case room == 0:
		return fmt.Sprintf("no host%s has %s", which, s.lacking(hosts))
	case s.ask.Affinity == calendar.AffinitySame:
		return fmt.Sprintf("no host%s can hold more than %s of this size, and %d are asked for on one host", which, counted(room, "instance"), s.ask.Quantity)
	case s.ask.Affinity == calendar.AffinityDifferent:
		return fmt.Sprintf("not enough hosts available: an instance of this size fits on %s, and %d are asked for on different hosts", counted(room, "host"), s.ask.Quantity)
	default:
		return fmt.Sprintf("not enough hosts available: they can hold %s of this size when nothing is promised, and %d are asked for", counted(room, "instance"), s.ask.Quantity)
	}
}

// lacking names the first resource of one instance that no host has enough of, with the most
// that one has; the whole size where each resource alone would do.
func (s *search) lacking(hosts hostset.Set) string {
	var most resource.Vector
	for number := range hosts.All() {
		most = most.Max(s.view.roster.host(number).Capacity)
	}
	want := s.ask.Resources
	for _, of := range []struct {
		name       string
		want, most int64
	}{
		{"VCPUs", want.VCPUs, most.VCPUs},
		{"MB of memory", want.MemoryMB, most.MemoryMB},
		{"GB of disk", want.DiskGB, most.DiskGB},
	} {
		if of.want > of.most {
			return fmt.Sprintf("%d %s; the largest has %d", of.want, of.name, of.most)
		}
	}
	for _, class := range slices.Sorted(maps.Keys(want.Custom)) {
		if want.Custom[class] > most.Custom[class] {
			return fmt.Sprintf("%d %s; the largest has %d", want.Custom[class], class, most.Custom[class])
		}
	}
	return want.String() + " together"
}
