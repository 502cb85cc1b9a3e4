package calendar

import (
	"cmp"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/hostset"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Slot is an entry of the paper's availability list: the hosts that are busy from Time until
// the next slot.
type Slot struct {
	Time span.Instant
	Busy []int
}

// Slots returns the calendar as the availability list of paper 003 section 4.1: times strictly
// increase, neighbors differ, the first slot is not empty and the last one is.
func (c *Calendar) Slots() []Slot {
	type change struct {
		at    span.Instant
		host  int
		comes bool
	}
	var changes []change
	for host := range c.lanes {
		for _, w := range c.lanes[host].busy() {
			changes = append(changes, change{w.Start, host, true}, change{w.End, host, false})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	busy := hostset.New(c.Hosts())
	var list []Slot
	for i, ch := range changes {
		if ch.comes {
			busy.Add(ch.host)
		} else {
			busy.Remove(ch.host)
		}
		if i+1 == len(changes) || changes[i+1].at != ch.at {
			list = append(list, Slot{ch.at, slices.AppendSeq([]int{}, busy.All())})
		}
	}
	return list
}
