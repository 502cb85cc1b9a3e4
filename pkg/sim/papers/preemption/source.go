// SPDX-License-Identifier: Apache-2.0

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

// source produces the virtual machines. Times begin at 0.
type source interface {
	// open returns the machines of a run. Only which of them are preemptible depends on share, and
	// a larger share adds to those of a smaller one. Reading ends when ctx does.
	open(ctx context.Context, run int, share float64) (machines, error)
	// marks reports whether share determines which machines are preemptible.
	marks() bool
}

// machines are a stream of virtual machines that the caller closes.
type machines interface {
	workload.Stream
	io.Closer
}

// paperHost is the capacity of the hosts in the snapshots of paper 001; traceHost has room for any
// machine of the Azure traces.
var (
	paperHost = resource.Vector{VCPUs: 8, MemoryMB: 16000, DiskGB: 160}
	traceHost = resource.Vector{VCPUs: 32, MemoryMB: 256 << 10}
)

// source returns the source that the options select, and sets the default Host for it. It reads a
// trace once, so that an unusable one is refused before the simulation begins.
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

// vcpus returns the number of VCPUs of all hosts.
func (o Options) vcpus() float64 { return float64(o.Hosts) * float64(o.Host.VCPUs) }

// madeUp is the source that generates machines.
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

// traces is the source for the Azure traces, which it repeats until the simulated days are over.
// Each repetition, a pass, has a whole number of days, so that night follows day.
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

// seenMachine is what the first reading of the trace stores of a machine.
type seenMachine struct{ submit, runtime, vcpus int64 }

// offered returns the mean number of VCPUs that all machines of the trace request in the measured
// days.
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

// passes are the machines of all passes, one pass after the other.
type passes struct {
	*traces
	run   int
	share float64
	pass  int
	files *workload.AzureFiles
	ended func() error // the context's error
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
