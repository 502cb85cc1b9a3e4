package preemption

import (
	"context"
	"errors"
	"io"
	"math"
	"os"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// source is where the virtual machines come from. Times begin at 0.
type source interface {
	// open gives the machines of a run. With a larger share of preemptible ones the same are
	// preemptible and more; all else is the same.
	// Reading ends when ctx does.
	open(ctx context.Context, run int, share float64) (machines, error)
	// marks says that it is the share by which machines are preemptible.
	marks() bool
}

// machines are a stream of virtual machines to be closed.
type machines interface {
	workload.Stream
	io.Closer
}

// paperHost is that of the snapshots of paper 001, and traceHost has room for any machine of
// the Azure traces.
var (
	paperHost = resource.Vector{VCPUs: 8, MemoryMB: 16000, DiskGB: 160}
	traceHost = resource.Vector{VCPUs: 32, MemoryMB: 256 << 10}
)

// source gives the one of the options, with the hosts for it. A trace is read once, so that
// one that cannot be used is refused before anything runs.
func (o *Options) source(ctx context.Context) (source, error) {
	if o.Trace == "" {
		if o.Host.IsZero() {
			o.Host = paperHost
		}
		m := workload.PaperVMs()
		m.PerDay = o.Load * o.vcpus() * day / (m.MeanLifetime() * m.MeanVCPUs())
		return madeUp{*o, m}, nil
	}
	if o.Host.IsZero() {
		o.Host = traceHost
	}
	found, err := os.Stat(o.Trace)
	if err != nil {
		return nil, &fault.Error{Kind: fault.Invalid, Field: "trace", Message: o.Trace + " cannot be opened", Err: err}
	}
	if !found.IsDir() {
		return newFile(ctx, *o)
	}
	return newTraces(ctx, *o)
}

// vcpus is how many there are.
func (o Options) vcpus() float64 { return float64(o.Hosts) * float64(o.Host.VCPUs) }

// madeUp makes machines up.
type madeUp struct {
	o     Options
	model workload.VMModel
}

func (s madeUp) marks() bool { return true }

func (s madeUp) open(_ context.Context, run int, share float64) (machines, error) {
	s.model.Preemptible = share
	v, err := workload.NewVMs(sim.Chance(s.o.Seed, "machines", run), s.model)
	return endless{v}, err
}

type endless struct{ workload.Stream }

func (endless) Close() error { return nil }

// traces are those of Azure, one pass after the other until the days are over, each of a
// whole number of days so that night follows day.
type traces struct {
	o       Options
	begin   int64 // by the dataset's clock: the full hour before the first machine
	pass    int64 // seconds
	keep    float64
	account workload.Account
	larger  int64
}

func newTraces(ctx context.Context, o Options) (*traces, error) {
	s := &traces{o: o}
	f, err := workload.OpenAzure(o.Trace, sim.Chance(o.Seed, "look"), 1, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var seen []seenMachine
	last := int64(0)
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		j, err := f.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		if last == 0 {
			s.begin = j.Submit - j.Submit%hour
		}
		last = j.Submit
		if !j.Shape.Fits(o.Host) {
			s.larger++
			continue
		}
		seen = append(seen, seenMachine{j.Submit - s.begin, j.Runtime, j.Shape.VCPUs})
	}
	s.account = f.Account()
	s.pass = max(day, (last-s.begin)/day*day)
	if s.keep = o.Load * o.vcpus() / s.offered(seen); s.keep > 1 || math.IsNaN(s.keep) {
		return nil, fault.Field("load", "%v of %d hosts is more than the trace has: at most %.3g", o.Load, o.Hosts, o.Load/s.keep)
	}
	return s, nil
}

// seenMachine is what a look at the trace remembers of a machine.
type seenMachine struct{ submit, runtime, vcpus int64 }

// offered is how many VCPUs all machines would have in the mean of the days that are measured.
func (s *traces) offered(seen []seenMachine) float64 {
	warm, until := day*int64(s.o.WarmUp), day*int64(s.o.Days)
	sum := 0.0
	for _, m := range seen {
		if m.submit >= s.pass {
			continue
		}
		for from := m.submit; from < until; from += s.pass {
			sum += float64(m.vcpus * max(0, min(until, from+m.runtime)-max(warm, from)))
		}
	}
	return sum / float64(until-warm)
}

func (s *traces) marks() bool { return true }

func (s *traces) open(ctx context.Context, run int, share float64) (machines, error) {
	m := &passes{traces: s, ended: ctx.Err, run: run, share: share}
	return m, m.begin()
}

// passes are machines of one pass after the other.
type passes struct {
	*traces
	run   int
	share float64
	pass  int
	files *workload.AzureFiles
	ended func() error // of the context
}

func (m *passes) begin() (err error) {
	m.files, err = workload.OpenAzure(m.o.Trace, sim.Chance(m.o.Seed, "machines", m.run, m.pass), m.keep, m.share)
	return err
}

func (m *passes) Next() (workload.Job, error) {
	for {
		if err := m.ended(); err != nil {
			return workload.Job{}, err
		}
		j, err := m.files.Next()
		at := j.Submit - m.traces.begin
		switch {
		case errors.Is(err, io.EOF) || err == nil && at >= m.traces.pass:
			if err := m.files.Close(); err != nil {
				return j, err
			}
			m.pass++
			if int64(m.pass)*m.traces.pass >= day*int64(m.o.Days) {
				m.files = nil
				return workload.Job{}, io.EOF
			}
			if err := m.begin(); err != nil {
				return j, err
			}
		case err != nil:
			return j, err
		case j.Shape.Fits(m.o.Host):
			j.Submit = at + int64(m.pass)*m.traces.pass
			return j, nil
		}
	}
}

func (m *passes) Close() error {
	if m.files == nil {
		return nil
	}
	return m.files.Close()
}
