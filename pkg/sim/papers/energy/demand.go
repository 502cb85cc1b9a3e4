// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// demand contains the requests of one run, sorted by start. Second 0 is the beginning of the
// simulation, a midnight.
type demand struct {
	requests []request
	hosts    int   // the most that are in use at once, plus the safety
	seconds  int64 // simulated

	header  workload.Header
	account workload.Account
	moved   int // requests that rule 1 has moved to their submission
}

// mostRequests bounds the requests kept in memory.
const mostRequests = 5_000_000

// demand reads or generates the requests of a run.
func (o *Options) demand(run int) (*demand, error) {
	d := &demand{}
	var err error
	if o.Trace == "" {
		err = o.made(d, run)
	} else {
		err = o.read(d)
	}
	if err != nil {
		return nil, err
	}
	if len(d.requests) == 0 {
		return nil, fault.Field("from", "there is no job in the simulated days")
	}
	slices.SortStableFunc(d.requests, func(a, b request) int { return cmp.Compare(a.start, b.start) })
	d.hosts = int(math.Ceil(float64(peak(d.requests)) * (1 + o.Safety)))
	if d.hosts > mostSize {
		return nil, fault.Field("trace", "needs %d hosts at once; %d can be simulated", d.hosts, mostSize)
	}
	return d, nil
}

// made generates the jobs of a run.
func (o *Options) made(d *demand, run int) error {
	kind := workload.Typeless()
	kind.Sizes = kind.Sizes.On(o.Processors)
	kind.Arrivals.Pace = float64(day) / o.PerDay / kind.Arrivals.MeanGap()
	jobs, err := workload.NewLublin(sim.Chance(o.Seed, "jobs", run), math.MaxInt, kind)
	if err != nil {
		return fmt.Errorf("generate jobs: %w", err)
	}
	return o.take(d, jobs, clock{hours: o.Hours})
}

// read reads the jobs of the trace file.
func (o *Options) read(d *demand) error {
	f, err := workload.Open(o.Trace, workload.OpenOptions{ProcsPerHost: o.ProcsPerHost, MostSize: mostSize, MakeUp: true, Longest: 366 * day})
	if err != nil {
		return err
	}
	d.header = f.Header()
	err = o.take(d, f, clock{o.Hours, d.header.UnixStart + int64(o.Zone)*hour})
	d.account = f.Account()
	return errors.Join(err, f.Close())
}

// take adds the jobs of the simulated days. A job starts at its submission or later, so take stops
// at the first job that was submitted after the last of these days.
func (o *Options) take(d *demand, from workload.Stream, c clock) error {
	begin, until := int64(0), int64(math.MaxInt64)
	for read := 0; ; read++ {
		j, err := from.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if read == 0 {
			begin = c.midnight(j.Submit) + int64(o.From)*day
			if o.Days > 0 {
				until = begin + int64(o.Days)*day
			}
		}
		if j.Submit >= until {
			break
		}
		if !j.Reserved { // it arrives when it began there: then demand never exceeds the machine of the log
			j.Submit += max(0, j.Waited)
		}
		r := adapt(&j, c)
		if r.start < begin || r.start >= until {
			continue
		}
		if len(d.requests) == mostRequests {
			return fault.Field("days", "have more than %d jobs; simulate fewer", mostRequests)
		}
		if j.Reserved && r.start != j.Start {
			d.moved++
		}
		r.start, r.asked = r.start-begin, max(0, r.asked-begin)
		d.requests = append(d.requests, r)
		d.seconds = max(d.seconds, r.start+r.duration)
	}
	if o.Days > 0 {
		d.seconds = int64(o.Days) * day
	}
	return nil
}

// ahead returns, for each request in their order, when it is submitted if the given share of them
// is known ahead.
func (o *Options) ahead(d *demand, share float64, run int) ([]int64, error) {
	asked := make([]int64, len(d.requests))
	known, err := workload.Reserve(&byStart{requests: d.requests}, sim.Chance(o.Seed, "ahead", run), share, o.Ahead.Least, o.Ahead.Most)
	if err != nil {
		return nil, err
	}
	for {
		j, err := known.Next()
		if errors.Is(err, io.EOF) {
			return asked, nil
		}
		if err != nil {
			return nil, err
		}
		i := j.Line
		switch r := d.requests[i]; {
		case !j.Reserved:
			asked[i] = r.start
		case r.own:
			asked[i] = r.asked
		default:
			asked[i] = j.Submit
		}
	}
}

// byStart is a workload.Stream of the requests as jobs without reservations; the Line of a job is
// the index of its request.
type byStart struct {
	requests []request
	next     int
}

// Next implements workload.Stream.
func (s *byStart) Next() (workload.Job, error) {
	if s.next == len(s.requests) {
		return workload.Job{}, io.EOF
	}
	r := &s.requests[s.next]
	s.next++
	return workload.Job{Line: int64(s.next - 1), Submit: r.start, Runtime: r.duration, Size: r.hosts}, nil
}
