// SPDX-License-Identifier: Apache-2.0

package planning

import (
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// never reports whether the hosts that match, now or later, have too little room for the request
// even without other reservations, so that neither claims nor the time are the obstacle.
func (s refusing) never() bool {
	for _, hosts := range []hostset.Set{s.query.Hosts, s.matching(true)} {
		if s.roomOfEmpty(hosts) >= s.request.Quantity && (!s.ruled().spreadRequired() || s.lying.keeps(s.emptyRoom(hosts), s.request.Quantity)) {
			return false
		}
	}
	return true
}

// roomOfEmpty returns how many hosts or instances would fit on the hosts without other
// reservations, at most the requested quantity.
func (s refusing) roomOfEmpty(hosts hostset.Set) int {
	if s.ruled().sameRequired() {
		most, room := 0, s.emptyRoom(hosts)
		for value := range s.lying.values {
			most = max(most, room[value])
		}
		return min(most, s.request.Quantity)
	}
	if s.request.Kind == reservation.Hosts {
		return min(hosts.Count(), s.request.Quantity)
	}
	total := int64(0)
	for number := range hosts.All() {
		times := int64(s.roomWhenEmpty(number))
		if s.request.Affinity == calendar.AffinitySame {
			total = max(total, times)
		} else {
			total += times
		}
	}
	return int(min(total, int64(s.request.Quantity)))
}

// roomWhenEmpty returns how many of the requested hosts or instances would fit on an existing host
// without other reservations.
func (s refusing) roomWhenEmpty(number int) int {
	switch {
	case s.request.Kind == reservation.Hosts:
		return 1
	case s.request.Affinity == calendar.AffinityDifferent:
		return int(min(s.view.Hosts.Host(number).Capacity.Times(s.request.Resources), 1))
	}
	return int(min(s.view.Hosts.Host(number).Capacity.Times(s.request.Resources), int64(s.request.Quantity)))
}

// tooSmall returns a sentence that states why the instances would not fit on the hosts even without
// other reservations.
func (s refusing) tooSmall(hosts hostset.Set) string {
	which := ""
	if s.request.HostProperties != "" {
		which = " that matches host_properties"
	}
	room := s.roomOfEmpty(hosts)
	switch {
	case room == 0:
		return fmt.Sprintf("no host%s has %s", which, s.lacking(hosts))
	case s.request.Affinity == calendar.AffinitySame:
		return fmt.Sprintf("no host%s can hold more than %s of this size, and %d are asked for on one host", which, fault.Counted(room, "instance"), s.request.Quantity)
	case s.request.Affinity == calendar.AffinityDifferent:
		return fmt.Sprintf("not enough hosts available: an instance of this size fits on %s, and %d are asked for on different hosts", fault.Counted(room, "host"), s.request.Quantity)
	default:
		return fmt.Sprintf("not enough hosts available: they can hold %s of this size when nothing is promised, and %d are asked for", fault.Counted(room, "instance"), s.request.Quantity)
	}
}

// lacking describes the first resource that is too small on every host for one instance, with the
// largest amount on a host. If each resource alone would fit, it describes the whole size.
func (s refusing) lacking(hosts hostset.Set) string {
	var most resource.Vector
	for number := range hosts.All() {
		most = most.Max(s.view.Hosts.Host(number).Capacity)
	}
	want := s.request.Resources
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
