// SPDX-License-Identifier: Apache-2.0

// Package openstack reads the hosts of an OpenStack cloud from Nova and Placement, at
// intervals, and sooner if Nova's notifications are received.
package openstack

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/nova/release"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Options configure how a cloud is read.
type Options struct {
	// Preemptible decides which instances are preemptible.
	Preemptible inventory.PreemptibleRule
	// FullEvery is the interval of full readings in seconds; between them only changes are read. 0
	// means DefaultFullEvery.
	FullEvery int64
	// LiveState receives the states of the hosts of each reading, with the cells from Cells;
	// without Cells, no cell is known. nil means that states are not needed.
	LiveState *inventory.LiveState
	Cells     Cells
	// Shown is called with LiveState after each reading; nil is not called.
	Shown func(*inventory.States)
	// Builds contains the failed builds, for LiveState; nil means that there are none.
	Builds *Builds
	// Missing returns, as sentences, what is configured and what that release of Nova does not have;
	// nil returns none.
	Missing func(release.Release) []string
	// Records mark preemptible instances, besides those that Preemptible marks; nil adds nothing.
	Records inventory.InstanceRecords
	Now     func() time.Time
	Log     *slog.Logger
}

// Cells returns the cell of each host: its UUID by the name of the nova-compute. The empty name
// stands for all hosts that are not listed.
type Cells interface {
	Cells(ctx context.Context) (map[string]string, error)
}

// DefaultFullEvery is the default interval of full readings in seconds.
const DefaultFullEvery = 600

// Source is the inventory.Source of a cloud. It is safe for concurrent use: a caller that comes
// during a reading waits for it and then reads what has changed since.
//
// The name of a Host is that of its nova-compute. Its Capacity is Placement's inventory without
// overcommitment, of VCPU and PCPU together, MEMORY_MB, DISK_GB and the custom resource classes,
// over its whole provider tree; Used is in the same classes. InstanceCount includes stopped
// instances. The holdings of instances are read only on hosts with a preemptible one: instead of
// the usages of a provider, or by one more call if a list of all providers contains these. Hosts
// with several hypervisors, such as Ironic's, are left out. No Host is Reservable.
type Source struct {
	compute   *nova.Client
	placement *placement.Client
	options   Options

	turn   chan struct{} // holds one while someone uses the fields below
	last   *cloud        // the last reading
	logged map[string]bool
	// release is the last one that was logged.
	release release.Release
	// cells are the result of the last successful call of Cells.
	cells map[string]string
}

// NewSource returns a source, without calling the cloud.
func NewSource(compute *nova.Client, place *placement.Client, o Options) *Source {
	o.FullEvery = cmp.Or(o.FullEvery, DefaultFullEvery)
	return &Source{compute: compute, placement: place, options: o, turn: make(chan struct{}, 1), last: &cloud{}}
}

// Calls returns the number of requests that the two clients have sent so far.
func (s *Source) Calls() int64 { return s.compute.Calls() + s.placement.Calls() }

// Hosts reads the cloud and returns its hosts, sorted by name. If a part of the cloud cannot be
// read, it returns the error of nova.Client or placement.Client, and the previous reading stays
// valid.
func (s *Source) Hosts(ctx context.Context) ([]inventory.Host, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var mark inventory.ReadVersion
	if s.options.LiveState != nil {
		mark = s.options.LiveState.BeginRead()
	}
	before, began := s.Calls(), s.options.Now()
	next, err := s.read(ctx, s.last, span.At(began))
	if err != nil {
		return nil, err
	}
	s.last = next
	hosts, notes := assemble(next, s.options.Preemptible)
	notes = append(notes, next.notes...)
	notes = append(notes, s.releaseNotes(next.release)...)
	if s.options.LiveState != nil {
		notes = append(notes, s.show(ctx, mark, next, hosts)...)
	}
	s.logNotes(notes)
	s.options.Log.Debug("read the cloud", "hosts", len(hosts), "instances", len(next.servers), "calls", s.Calls()-before,
		"took", s.options.Now().Sub(began).String())
	return hosts, nil
}

// releaseNotes returns, as sentences, what an operator should know about the release of Nova.
func (s *Source) releaseNotes(of release.Release) (notes []string) {
	if of != s.release {
		s.options.Log.Info("the hosts are those of "+of.String(), "before", s.release.String())
		s.release = of
	}
	if of == release.Newer {
		notes = append(notes, fmt.Sprintf("the cloud has %v: Almanac treats it like that, and passes on requests with what it does not know", of))
	}
	if s.options.Missing != nil {
		notes = append(notes, s.options.Missing(of)...)
	}
	return notes
}

// logNotes logs each note once, as long as it applies.
func (s *Source) logNotes(notes []string) {
	told := make(map[string]bool, len(notes))
	for _, note := range notes {
		if !s.logged[note] {
			s.options.Log.Warn(note)
		}
		told[note] = true
	}
	s.logged = told
}
