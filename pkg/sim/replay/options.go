// SPDX-License-Identifier: Apache-2.0

// Package replay runs an operator's own workload against the service under several settings,
// concurrently, and reports which setting was best on which measure. It requests the jobs of the
// traces as reservations from the service's own booking.Service (through sim.Booking), at the times
// of their submission. If a setting switches hosts off, the service's own energy controller does so
// (package site).
package replay

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/sim"
	"github.com/almanac-cloud/almanac/pkg/workload"
)

// Options describe the workload, the hosts, and the settings that are compared.
type Options struct {
	// Traces are files that package workload reads. Several are merged, on one clock.
	Traces []string
	// Formats are the formats of the traces, or one format for all; an empty list means that the
	// content of each determines it.
	Formats []string
	// ProcsPerHost is the number of processors of a host, for traces that count processors.
	ProcsPerHost int
	// MakeUp adds what OAR logs lack to their reservations; see workload.OARMadeUp.
	MakeUp bool
	// Hosts is the number of hosts, all alike. 0 means that HostsFile lists the hosts, in the
	// service's own format (etc/almanac/hosts.yaml) or, without a file, that the traces state the
	// size of their machine.
	Hosts     int
	HostsFile string
	// Shapes allows jobs that have a shape to share hosts, as reservations of kind instance do.
	// Otherwise each of their nodes takes a whole host, as for all other jobs.
	Shapes bool
	// Settings are compared; an empty list means DefaultSettings.
	Settings []Setting
	// MostJobs ends the replay after that many jobs; 0 means all jobs.
	MostJobs int64
	// Draw is the power of each host.
	Draw energy.Draw
	// Seed determines the boot times.
	Seed uint64
}

// Defaults returns the options for an operator who only names a trace. The power of a host is that
// of Batsim's example (platforms/cluster_energy_128.xml): 95 W idle, 190.7 W at full load, 9.75 W
// off, and 19,582 J for a shutdown and a boot.
func Defaults() Options {
	return Options{
		ProcsPerHost: 1, MakeUp: true, Seed: 1,
		Draw: energy.Draw{Idle: 95, Full: 190.738, Off: 9.75, BootJoules: 18_966 + 616},
	}
}

const (
	mostHosts    = 1 << 16
	mostSettings = 20
	mostTraces   = 16
	mostWatts    = 1e9
	// longest is the largest number of seconds that a job may last, be requested ahead of its
	// start, or follow the job before it. Larger values are mistakes in the trace, and would
	// simulate years without jobs.
	longest = 366 * 24 * 3600
)

// Check returns a fault that names the first option outside its range.
func (o Options) Check() error {
	switch {
	case len(o.Traces) == 0 || slices.Contains(o.Traces, ""):
		return fault.Field("trace", "a file with a workload is required")
	case len(o.Traces) > mostTraces:
		return fault.Field("trace", "%d traces are too many; %d can be merged", len(o.Traces), mostTraces)
	case len(o.Formats) > 1 && len(o.Formats) != len(o.Traces):
		return fault.Field("trace_format", "there are %d formats for %d traces; use one for each, or one for all", len(o.Formats), len(o.Traces))
	case o.ProcsPerHost < 1 || o.ProcsPerHost > mostHosts:
		return fault.Field("procs_per_host", "is %d; it must be from 1 to %d", o.ProcsPerHost, mostHosts)
	case o.Hosts < 0 || o.Hosts > mostHosts:
		return fault.Field("hosts", "is %d; it must be from 1 to %d", o.Hosts, mostHosts)
	case o.Hosts > 0 && o.HostsFile != "":
		return fault.Field("hosts", "the number of hosts and a file of hosts exclude each other")
	case o.Shapes && o.HostsFile == "":
		return fault.Field("shapes", "requires a file of hosts with their sizes")
	case o.MostJobs < 0:
		return fault.Field("most_jobs", "is %d; it must be 1 or more, or 0 for all", o.MostJobs)
	case len(o.Settings) > mostSettings:
		return fault.Field("settings", "%d settings are too many; %d can be compared", len(o.Settings), mostSettings)
	}
	if err := o.checkDraw(); err != nil {
		return err
	}
	for i := range o.Traces {
		if err := o.reading(i, 0).Check(); err != nil {
			return err
		}
	}
	return o.checkSettings()
}

func (o *Options) checkDraw() error {
	for _, draw := range []struct {
		name  string
		value float64
	}{{"idle_watts", o.Draw.Idle}, {"full_watts", o.Draw.Full}, {"off_watts", o.Draw.Off}, {"boot_joules", o.Draw.BootJoules}} {
		if math.IsNaN(draw.value) || draw.value < 0 || draw.value > float64(mostWatts) {
			return fault.Field(draw.name, "is %v; it must be from 0 to %v", draw.value, float64(mostWatts))
		}
	}
	return nil
}

func (o *Options) checkSettings() error {
	names := map[string]bool{}
	for i := range o.Settings {
		s := &o.Settings[i]
		if err := s.check(fmt.Sprintf("settings[%d].", i)); err != nil {
			return err
		}
		switch {
		case names[s.Name]:
			return fault.Field(fmt.Sprintf("settings[%d].name", i), "%s is the name of another setting", s.Name)
		case o.Shapes && s.Energy.on():
			return fault.Field("shapes", "setting %s switches hosts off, which is simulated for whole hosts only", s.Name)
		}
		names[s.Name] = true
	}
	return nil
}

// reading returns how to read the trace with an index for that many hosts; 0 means that the number
// is not known.
func (o *Options) reading(trace, hosts int) workload.OpenOptions {
	r := workload.OpenOptions{ProcsPerHost: o.ProcsPerHost, MakeUp: o.MakeUp, MostSize: hosts, Longest: longest}
	switch {
	case len(o.Formats) == 1:
		r.Format = o.Formats[0]
	case len(o.Formats) > 1:
		r.Format = o.Formats[trace]
	}
	if o.Shapes {
		r.MostSize = 0 // of jobs that share hosts; booking refuses what does not fit
	}
	return r
}

// machine returns the hosts: all are in the pool, on, and empty at first. said is the number of
// hosts that the traces state.
func (o *Options) machine(ctx context.Context, said int) ([]inventory.Host, error) {
	if o.HostsFile == "" {
		n := o.Hosts
		if n == 0 {
			n = said
		}
		if n > mostHosts {
			return nil, fault.Field("hosts", "is required: the machine of the traces has %d hosts, and at most %d can be simulated", n, mostHosts)
		}
		if n < 1 {
			return nil, fault.Field("hosts", "is required: the traces do not contain the number of hosts of their machine")
		}
		return sim.Hosts(n), nil
	}
	listed, err := inventory.FileSource(o.HostsFile).Hosts(ctx)
	if err != nil {
		if f := fault.Of(err); f.Kind == fault.Invalid {
			return nil, err
		}
		return nil, &fault.Error{Kind: fault.Invalid, Field: "hosts_file", Message: o.HostsFile + " cannot be read", Err: err}
	}
	var hosts []inventory.Host
	for _, h := range listed {
		if !h.Reservable {
			continue
		}
		hosts = append(hosts, inventory.Host{
			Name: h.Name, Capacity: h.Capacity, Zone: h.Zone, Aggregates: h.Aggregates, Traits: h.Traits,
			Properties: h.Properties, Reservable: true, FlopsPerWatt: h.FlopsPerWatt,
		})
	}
	if len(hosts) == 0 || len(hosts) > mostHosts {
		return nil, fault.Field("hosts_file", "%s has %d hosts that may be reserved; it must be from 1 to %d", o.HostsFile, len(hosts), mostHosts)
	}
	return hosts, nil
}
