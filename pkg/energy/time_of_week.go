package energy

import "github.com/almanac-cloud/almanac/pkg/span"

// quarters is how many quarters of an hour a week has.
const quarters = 7 * 24 * 4

// timeOfWeek says that there will be as many as there were at most at this time of the
// week within the last weeks. Where that is not known, what is in use stays so.
type timeOfWeek struct {
	last    Demand
	weeks   int64
	history []peak // of each quarter of an hour of the last weeks and of this one
}

// peak is the most that was seen in one quarter of an hour, which counts from 1970.
type peak struct {
	quarter int64
	inUse   int
}

func newTimeOfWeek(weeks int) *timeOfWeek {
	return &timeOfWeek{weeks: int64(weeks), history: make([]peak, quarters*(weeks+1))}
}

func (f *timeOfWeek) Observe(at span.Instant, inUse int) {
	f.last = Demand{At: at, InUse: max(inUse, 0)}
	now := quarterOf(at)
	p := f.at(now)
	if p.quarter != now {
		*p = peak{quarter: now}
	}
	p.inUse = max(p.inUse, f.last.InUse)
}

// at is where the quarter is kept, or an older one of which it takes the place.
func (f *timeOfWeek) at(quarter int64) *peak {
	n := int64(len(f.history))
	return &f.history[((quarter%n)+n)%n]
}

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

// quarterOf is the quarter of an hour since 1970 that has the instant.
func quarterOf(at span.Instant) int64 {
	q := int64(at) / quarter
	if int64(at)%quarter < 0 {
		q--
	}
	return q
}
