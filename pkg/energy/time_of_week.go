// SPDX-License-Identifier: Apache-2.0

package energy

import "github.com/almanac-cloud/almanac/pkg/span"

// quarters is the number of quarters of an hour in a week.
const quarters = 7 * 24 * 4

// timeOfWeek predicts the largest number of hosts in use at the same time of the week in the last
// weeks. If there is no measurement for that time, it predicts that as many stay in use as are in
// use now.
type timeOfWeek struct {
	last    Demand
	weeks   int64
	history []peak // one for each quarter of an hour of the last weeks and of this one
}

// peak is the largest number of hosts in use in one quarter of an hour. Quarters are counted from
// 1970.
type peak struct {
	quarter int64
	inUse   int
}

func newTimeOfWeek(weeks int) *timeOfWeek {
	return &timeOfWeek{weeks: int64(weeks), history: make([]peak, quarters*(weeks+1))}
}

// Observe implements Forecaster. It keeps the peak of each quarter of an hour of each week.
func (f *timeOfWeek) Observe(at span.Instant, inUse int) {
	f.last = Demand{At: at, InUse: max(inUse, 0)}
	now := quarterOf(at)
	p := f.at(now)
	if p.quarter != now {
		*p = peak{quarter: now}
	}
	p.inUse = max(p.inUse, f.last.InUse)
}

// at returns the entry of the quarter, which may still contain the peak of an older quarter.
func (f *timeOfWeek) at(quarter int64) *peak {
	n := int64(len(f.history))
	return &f.history[((quarter%n)+n)%n]
}

// Forecast implements Forecaster: the largest peak at the same times in the past weeks, at least the
// last demand.
func (f *timeOfWeek) Forecast(ahead int64) int {
	most := f.last.InUse
	now := quarterOf(f.last.At)
	until := min(quarterOf(f.last.At.Add(max(ahead, 0))), now+quarters)
	for q := now; q <= until; q++ {
		for week := int64(1); week <= f.weeks; week++ {
			then := q - week*quarters
			if p := f.at(then); p.quarter == then {
				most = max(most, p.inUse)
			}
		}
	}
	return most
}

// quarterOf returns the quarter of an hour since 1970 that contains the instant.
func quarterOf(at span.Instant) int64 {
	q := int64(at) / quarter
	if int64(at)%quarter < 0 {
		q--
	}
	return q
}
