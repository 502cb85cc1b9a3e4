// Package openstack lists the hosts of an OpenStack cloud: what Nova and Placement say
// of them, polled, and sooner where Nova's notifications are heard.
package openstack

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/nova"
	"github.com/almanac-cloud/almanac/pkg/placement"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Options are how a cloud is read.
type Options struct {
	// Preemptible says which instances are.
	Preemptible inventory.PreemptibleRule
	// FullEvery is after how many seconds everything is read again; between, only what
	// has changed. 0 is DefaultFullEvery.
	FullEvery int64
	// Board, where it is not nil, is shown the states of the hosts of each reading, with the
	// cells that Cells tells; nil knows none.
	Board *inventory.Board
	Cells Cells
	// Builds has those that have failed, for the Board; nil has none.
	Builds *Builds
	Now    func() time.Time
	Log    *slog.Logger
}

// Cells tells in which cell each host is: its UUID by the name of the nova-compute. The
// empty name stands for all that are not there.
type Cells interface {
	Cells(ctx context.Context) (map[string]string, error)
}

// DefaultFullEvery is how often, in seconds, everything is read again.
const DefaultFullEvery = 600

// Source is the inventory.Source of a cloud. It is safe for concurrent use: who comes
// while another reads, waits and then reads what has changed meanwhile.
//
// The name of a Host is that of its nova-compute. Its Capacity is what Placement has of
// it without overcommitment, of VCPU and PCPU together, MEMORY_MB, DISK_GB and the
// custom resource classes, over its whole tree of providers; Used is in the same
// classes. Guests counts all its instances, also those that are stopped. What instances hold
// is read of hosts with a preemptible one only: in place of the usages of a provider, or by
// one more call where a list of all providers tells these. Hosts with several hypervisors, as
// of Ironic, are left out. No Host is Reservable.
type Source struct {
	compute   *nova.Client
	placement *placement.Client
	options   Options
	guests    inventory.Guests // nil remembers none
	shown     func(*inventory.States)

	turn chan struct{} // holds one while somebody uses the fields below
	last *cloud        // the last reading
	told map[string]bool
	// cells are those that were told last.
	cells map[string]string
}

// NewSource gives a source, which asks the cloud nothing yet.
func NewSource(compute *nova.Client, place *placement.Client, o Options) *Source {
	o.FullEvery = cmp.Or(o.FullEvery, DefaultFullEvery)
	return &Source{compute: compute, placement: place, options: o, turn: make(chan struct{}, 1), last: &cloud{}}
}

// Remember has the source ask guests with each reading which instances are preemptible, beside
// those that the rule marks. It is called once, before the first reading.
func (s *Source) Remember(guests inventory.Guests) { s.guests = guests }

// Shown has f called with the states that are on the board after each reading. It is called
// once, before the first reading.
func (s *Source) Shown(f func(*inventory.States)) { s.shown = f }

// Calls is how many requests the two clients have sent so far.
func (s *Source) Calls() int64 { return s.compute.Calls() + s.placement.Calls() }

// Hosts reads the cloud and gives its hosts by name. Where a part of it cannot be read
// it fails, as nova.Client and placement.Client do, and nothing is known anew.
func (s *Source) Hosts(ctx context.Context) ([]inventory.Host, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var mark inventory.Mark
	if s.options.Board != nil {
		mark = s.options.Board.Begin()
	}
	before, began := s.Calls(), s.options.Now()
	next, err := s.read(ctx, s.last, span.At(began))
	if err != nil {
		return nil, err
	}
	s.last = next
	hosts, notes := assemble(next, s.options.Preemptible)
	notes = append(notes, next.notes...)
	if s.options.Board != nil {
		notes = append(notes, s.show(ctx, mark, next, hosts)...)
	}
	s.tell(notes)
	s.options.Log.Debug("read the cloud", "hosts", len(hosts), "instances", len(next.servers), "calls", s.Calls()-before,
		"took", s.options.Now().Sub(began).String())
	return hosts, nil
}

// tell logs what could not be taken over as it is, once as long as it stays so.
func (s *Source) tell(notes []string) {
	told := make(map[string]bool, len(notes))
	for _, note := range notes {
		if !s.told[note] {
			s.options.Log.Warn(note)
		}
		told[note] = true
	}
	s.told = told
}
