// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/workload"
)

// request is a job as the user of a cloud would request it. Times are seconds.
type request struct {
	start, duration int64
	hosts           int
	// own is true if the workload had a reservation for the job. asked is when the workload
	// requested it, or its start if rule 1 of the adaptation has moved it. For other requests asked
	// is the start.
	own   bool
	asked int64
}

// clock converts seconds of the workload to times of day and distinguishes working hours from
// others. Second 0 of the workload is shift seconds after midnight.
type clock struct {
	hours Hours
	shift int64
}

// midnight returns the last midnight at or before a second.
func (c clock) midnight(second int64) int64 { return second - c.sinceMidnight(second) }

func (c clock) sinceMidnight(second int64) int64 { return ((second+c.shift)%day + day) % day }

func (c clock) working(second int64) bool {
	of := c.sinceMidnight(second)
	return of >= int64(c.hours.From)*hour && of < int64(c.hours.To)*hour
}

// adapt converts a job to a request by the rules of paper 004, which model a cloud in which hosts
// are available on demand:
//
//  1. a job that was submitted within working hours for a start outside of them starts at its
//     submission: in a cloud its user need not have waited for the night;
//  2. all other reservations start when they did;
//  3. jobs that were not reserved stay unchanged.
func adapt(j *workload.Job, c clock) request {
	r := request{start: j.Submit, asked: j.Submit, duration: j.Runtime, hosts: j.Size, own: j.Reserved}
	if j.Reserved && !(c.working(j.Submit) && !c.working(j.Start)) {
		r.start, r.asked = j.Start, min(j.Submit, j.Start)
	}
	return r
}

// peak returns the largest number of hosts in use at once if each request gets its own hosts at its
// start.
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
		return a.hosts - b.hosts // ends make room first
	})
	most, used := 0, 0
	for _, c := range changes {
		used += c.hosts
		most = max(most, used)
	}
	return most
}
