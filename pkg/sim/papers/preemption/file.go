// SPDX-License-Identifier: Apache-2.0

package preemption

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// file is the source for a CSV file; every run has the same machines.
type file struct {
	o       Options
	begin   int64 // the midnight before its first machine
	days    int64 // until the end of the day on which the last machine arrives
	account workload.Account

	// These count virtual machines: larger those for which no host has room. The others arrive in
	// the warm-up days (early), in the measured days, or after them (late).
	larger, early, measured, late int64
}

// openFile opens the CSV file. Requests for several machines that all hosts together could not hold
// are left out.
func (o Options) openFile() (*workload.File, error) {
	return workload.Open(o.Trace, workload.OpenOptions{Format: "csv", MostSize: int(o.vcpus())})
}

func newFile(ctx context.Context, o Options) (*file, error) {
	s := &file{o: o}
	f, err := o.openFile()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	for first := true; ; first = false {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		j, err := f.Next()
		switch {
		case errors.Is(err, io.EOF) && first:
			return nil, fault.Field("trace", "%s", strings.Join(append([]string{o.Trace + " has no machines"}, leftOut(f.Account())...), "; "))
		case errors.Is(err, io.EOF):
			s.account = f.Account()
			return s, s.check()
		case err != nil:
			return nil, err
		case j.Shape.VCPUs < 1 || j.Shape.MemoryMB < 1:
			return nil, fault.Field("trace", "%s, line %d: a virtual machine needs vcpus and memory_mb", o.Trace, j.Line)
		}
		if first {
			s.begin = j.Submit - j.Submit%day
		}
		s.count(j)
	}
}

func (s *file) count(j workload.Job) {
	at, size := j.Submit-s.begin, int64(j.Size)
	s.days = at/day + 1
	switch {
	case !j.Shape.Fits(s.o.Host):
		s.larger += size
	case at < day*int64(s.o.WarmUp):
		s.early += size
	case at < day*int64(s.o.Days):
		s.measured += size
	default:
		s.late += size
	}
}

// check returns a fault if the file has no machine to measure.
func (s *file) check() error {
	switch {
	case s.measured > 0:
		return nil
	case s.early+s.late == 0:
		return fault.Field("trace", "no host has room for any of the %d machines of %s: a host has %v", s.larger, s.o.Trace, s.o.Host)
	case s.late > 0:
		return fault.Field("days", "no machine of %s comes in the days that are measured, and %d come later; it has %d days", s.o.Trace, s.late, s.days)
	}
	return fault.Field("warm_up", "all %d machines of %s come in the first %d days, which are not measured; it has %d days", s.early, s.o.Trace, s.o.WarmUp, s.days)
}

func (s *file) marks() bool { return false }

func (s *file) open(ctx context.Context, _ int, _ float64) (machines, error) {
	f, err := s.o.openFile()
	if err != nil {
		return nil, err
	}
	return &fileMachines{File: f, begin: s.begin, host: s.o.Host, ended: ctx.Err}, nil
}

// fileMachines are the single machines of a file, without those for which no host has room.
type fileMachines struct {
	*workload.File
	begin int64
	host  resource.Vector
	last  workload.Job
	left  int          // machines of last that remain
	ended func() error // the context's error
}

func (m *fileMachines) Next() (workload.Job, error) {
	for m.left == 0 {
		if err := m.ended(); err != nil {
			return workload.Job{}, err
		}
		j, err := m.File.Next()
		if err != nil {
			return j, err
		}
		if j.Shape.Fits(m.host) {
			m.last, m.left = j, j.Size
		}
	}
	m.left--
	j := m.last
	j.Submit, j.Size = j.Submit-m.begin, 1
	return j, nil
}

// leftOut lists the lines of a trace that were skipped, with the reasons.
func leftOut(a workload.Account) (items []string) {
	for _, s := range a.Skipped {
		items = append(items, fmt.Sprintf("skipped lines: %d; each %s; the first are %s", s.Lines, s.Reason, strings.Trim(fmt.Sprint(s.First), "[]")))
	}
	return items
}
