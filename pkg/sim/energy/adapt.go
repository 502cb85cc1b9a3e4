package energy

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/workload"
)

// request is a job as a cloud's user would ask for it. Times are seconds.
type request struct {
	start, duration int64
	hosts           int
	// own says that it was a reservation in the workload, which was asked for at asked: at its
	// start where rule 1 of the adaptation has moved it. Of any other, asked is the start.
	own   bool
	asked int64
}

// clock tells working hours from the others, where second 0 of the workload is shift seconds
// after midnight.
type clock struct {
	hours Hours
	shift int64
}

// midnight gives the midnight before a second, or at it.
func (c clock) midnight(second int64) int64 { return second - c.sinceMidnight(second) }

func (c clock) sinceMidnight(second int64) int64 { return ((second+c.shift)%day + day) % day }

func (c clock) working(second int64) bool {
	of := c.sinceMidnight(second)
	return of >= int64(c.hours.From)*hour && of < int64(c.hours.To)*hour
}

// adapt makes a request of a job by the rules of paper 004, as what would be asked of a cloud
// where everything is on demand:
//
//  1. what was submitted within working hours for a start outside of them starts when it was
//     submitted: in a cloud its user need not have waited for the night;
//  2. all other reservations start when they did;
//  3. what was not reserved stays as it is.
func adapt(j *workload.Job, c clock) request {
	r := request{start: j.Submit, asked: j.Submit, duration: j.Runtime, hosts: j.Size, own: j.Reserved}
	if j.Reserved && !(c.working(j.Submit) && !c.working(j.Start)) {
		r.start, r.asked = j.Start, min(j.Submit, j.Start)
	}
	return r
}

// peak is how many hosts are in use at most at once where each request has its own from its
// start on.
func peak(requests []request) int {
	type change struct {
		at    int64
		hosts int
	}
	changes := make([]change, 0, 2*len(requests))
	for _, r := range requests {
		changes = append(changes, change{r.start, r.hosts}, change{r.start + r.duration, -r.hosts})
	}
	slices.SortFunc(changes, func(a, b change) int {
		if a.at != b.at {
			return int(max(-1, min(1, a.at-b.at)))
		}
		return a.hosts - b.hosts // what ends makes room first
	})
	most, used := 0, 0
	for _, c := range changes {
		used += c.hosts
		most = max(most, used)
	}
	return most
}
