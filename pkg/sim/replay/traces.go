// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"errors"
	"io"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// feed is the jobs of all traces, merged in the order of their submission.
type feed struct {
	files  []*workload.File
	merged workload.Stream
	left   int64 // jobs that Next may still return; negative is unlimited
}

// open opens the traces for a machine with that many hosts; 0 means that the number is not known.
func (o *Options) open(hosts int) (*feed, error) {
	f := &feed{left: -1}
	if o.MostJobs > 0 {
		f.left = o.MostJobs
	}
	var streams []workload.Stream
	for i, path := range o.Traces {
		file, err := workload.Open(path, o.reading(i, hosts))
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		f.files, streams = append(f.files, file), append(streams, file)
	}
	f.merged = workload.Merge(streams...)
	return f, nil
}

// Next implements workload.Stream.
func (f *feed) Next() (workload.Job, error) {
	if f.left == 0 {
		return workload.Job{}, io.EOF
	}
	f.left--
	return f.merged.Next()
}

// Close closes the files.
func (f *feed) Close() error {
	var all error
	for _, file := range f.files {
		all = errors.Join(all, file.Close())
	}
	return all
}

// hostsSaid returns the number of hosts that the traces' headers state; 0 if no header states one.
func (o *Options) hostsSaid() (hosts int, err error) {
	f, err := o.open(0)
	if err != nil {
		return 0, err
	}
	for _, file := range f.files {
		h := file.Header()
		n := h.MaxNodes
		if h.MaxProcs > 0 {
			n = (h.MaxProcs + o.ProcsPerHost - 1) / o.ProcsPerHost
		}
		hosts = max(hosts, n)
	}
	return hosts, f.Close()
}

// survey is what the traces contain, from a first reading before any run.
type survey struct {
	traces   []traced
	jobs     int64
	reserved int64
	shaped   int64
	yielding int64 // preemptible jobs
	guessed  int64 // jobs with an estimate
	first    int64 // the Submit of the first and of the last job
	last     int64
	demand   float64 // host-seconds
	widest   int
	// logged are the waits that the trace itself recorded, in seconds.
	logged quantiles
}

// traced is the result of the first reading of one trace.
type traced struct {
	format  string
	header  workload.Header
	account workload.Account
}

// tooFarApart is by how many seconds the clocks of merged traces may differ.
const tooFarApart = 10 * 366 * 24 * 3600

// look reads the traces once, so that unreadable ones are refused before any run.
func (o *Options) look(ctx context.Context, hosts int) (*survey, error) {
	f, err := o.open(hosts)
	if err != nil {
		return nil, err
	}
	s := &survey{}
	err = s.take(ctx, f)
	for _, file := range f.files {
		s.traces = append(s.traces, traced{file.Format(), file.Header(), file.Account()})
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return s, s.check(o)
}

func (s *survey) take(ctx context.Context, f *feed) error {
	for ; ; s.jobs++ {
		job, err := f.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if s.jobs%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if s.jobs == 0 {
			s.first = job.Submit
		}
		if job.Submit-s.last > tooFarApart && s.jobs > 0 {
			return fault.Field("trace", "the clocks of the traces differ: after %d s the next job is at %d s; merge only traces with the same clock", s.last, job.Submit)
		}
		s.last = job.Submit
		s.demand += float64(job.Runtime) * float64(job.Size)
		s.widest = max(s.widest, job.Size)
		count(&s.reserved, job.Reserved)
		count(&s.shaped, !job.Shape.IsZero())
		count(&s.yielding, job.Preemptible)
		count(&s.guessed, job.Estimate > 0)
		if !job.Reserved && job.Waited >= 0 {
			s.logged.add(job.Waited)
		}
	}
}

func count(n *int64, is bool) {
	if is {
		*n++
	}
}

// check returns a fault if the traces leave nothing, or almost nothing, to replay.
func (s *survey) check(o *Options) error {
	for i, t := range s.traces {
		gaps := int64(0)
		for _, skipped := range t.account.Skipped {
			if skipped.Reason == workload.AfterGap {
				gaps = skipped.Lines
			}
		}
		if gaps > t.account.Jobs {
			return fault.Field("trace", "%s: most of the jobs come more than a year after the first ones; cut these off", o.Traces[i])
		}
	}
	if s.jobs == 0 {
		return fault.Field("trace", "there is no job in it that can be used%s", mainReason(s.traces))
	}
	return nil
}

// mainReason returns why most of the lines were skipped.
func mainReason(traces []traced) string {
	var most workload.Skipped
	for _, t := range traces {
		for _, s := range t.account.Skipped {
			if s.Lines > most.Lines {
				most = s
			}
		}
	}
	if most.Lines == 0 {
		return ""
	}
	return ": most of the lines have the same problem: each " + most.Reason
}

// lastStart is in the year 2242: a header with a later start is wrong.
const lastStart = 1 << 33

// zero returns the instant that is 0 on the clock of the traces: the start that a header states;
// 1970 if the traces count from then; otherwise the beginning of simulated time.
func (s *survey) zero() span.Instant {
	for _, t := range s.traces {
		if t.header.UnixStart > 0 && t.header.UnixStart < lastStart && s.first < tooFarApart {
			return span.Instant(t.header.UnixStart)
		}
	}
	if s.first >= tooFarApart {
		return 0
	}
	return sim.Second(0)
}
