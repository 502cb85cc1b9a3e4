// SPDX-License-Identifier: Apache-2.0

package cloudtest

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/dispatch"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/placing"
)

// Bench is a Dispatcher and an Evictor on a Cloud.
type Bench struct {
	*Model
	*dispatch.Dispatcher
	*eviction.Evictor
	Board   *inventory.LiveState
	Decided Kept
	// Seen returns how many VCPU host i has for a Look.
	Seen func(i int) int64
}

// New returns a Bench whose waits call wait.
func New(t interface{ Fatal(...any) }, c *Model, wait func() error) *Bench {
	b := &Bench{Model: c, Board: inventory.NewLiveState()}
	b.Seen = func(i int) int64 { return b.Limit[Provider(i)] }
	mark := b.Board.BeginRead()
	var rows []inventory.HostState
	for i := range len(c.Limit) {
		rows = append(rows, inventory.HostState{
			Name: Host(i), Node: Host(i), Provider: Provider(i), Stocks: b.Stocks(i), Instances: b.instancesOn(i),
		})
	}
	states, err := inventory.NewStates(rows, nil)
	if err != nil {
		t.Fatal(err)
	}
	b.Board.Replace(mark, states, nil)
	now, log := func() time.Time { return c.At }, slog.New(slog.DiscardHandler)
	pass := func(_ context.Context, d time.Duration) error {
		c.Passes(d)
		return wait()
	}
	b.Evictor = eviction.New(eviction.Options{
		Board: b.Board, Placement: c, Looker: b, Servers: c, Timeout: time.Minute, Now: now, Wait: pass, Log: log,
	})
	b.Dispatcher = dispatch.New(dispatch.Options{
		Board: b.Board, Planner: FirstFit{}, Placement: c, Looker: b, Evictor: b.Evictor, Decisions: &b.Decided,
		Now: now, Draw: func(int) int { return 0 }, Wait: pass, Log: log,
	})
	return b
}

// Sweep carries out the rollbacks in the ledger.
func (b *Bench) Sweep(ctx context.Context) error { return b.Ledger.Sweep(ctx) }

// Never is a wait that never ends early.
func Never() error { return nil }

// Stocks returns what Placement has of host i.
func (b *Bench) Stocks(i int) map[string]inventory.Stock {
	return map[string]inventory.Stock{"VCPU": {Provider: Provider(i), Total: b.Seen(i), Ratio: 1, Used: b.Used(Provider(i)), Min: b.Least}}
}

// Look implements eviction.Looker.
func (b *Bench) Look(_ context.Context, hosts []string) error {
	if b.Model.Call("look") != Fine {
		return Away
	}
	for i := range len(b.Limit) {
		if slices.Contains(hosts, Host(i)) {
			b.Board.CorrectHost(b.Board.BeginRead(), Host(i), b.Stocks(i), b.Holds(i))
		}
	}
	return nil
}

// Request returns a request for instances of some VCPU.
func Request(vcpus int64, instances ...string) *placing.Request {
	return &placing.Request{
		ID: "req-1", ProjectID: "project", UserID: "user", Instances: instances,
		Resources: map[string]int64{"VCPU": vcpus}, Alternates: 2,
	}
}

// MustPlace places a request. An error ends the test.
func (b *Bench) MustPlace(t *testing.T, r *placing.Request) dispatch.Placed {
	t.Helper()
	placed, err := b.Place(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	return placed
}

// On returns the number of VCPUs that a consumer has on each host.
func (b *Bench) On(consumer string) map[string]int64 {
	all := map[string]int64{}
	for i := range len(b.Limit) {
		if n := b.Consumers[consumer].Allocations[Provider(i)]["VCPU"]; n > 0 {
			all[Host(i)] = n
		}
	}
	return all
}

// Calm returns a Bench on which all calls are fine.
func Calm(t *testing.T, limits ...int64) *Bench {
	t.Helper()
	return New(t, NewCloud(limits...), Never)
}

// Troubles sets the fates of the next calls of a name; all others are fine.
func (c *Model) Troubles(call string, fates ...Fate) {
	c.Fate = func(now string) Fate {
		if now != call || len(fates) == 0 {
			return Fine
		}
		next := fates[0]
		fates = fates[1:]
		return next
	}
}

// Called checks which calls there were.
func (b *Bench) Called(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, b.Calls); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}

// Has checks how many VCPUs a consumer has on each host.
func (b *Bench) Has(t *testing.T, consumer string, want map[string]int64) {
	t.Helper()
	if diff := cmp.Diff(want, b.On(consumer)); diff != "" {
		t.Errorf("%s has (-want +got):\n%s", consumer, diff)
	}
}

// Free checks that the live state counts nothing as used.
func (b *Bench) Free(t *testing.T) {
	t.Helper()
	for i, used := range b.Board.Load().Column("VCPU").Used {
		if used != 0 {
			t.Errorf("%d VCPU of %s count as used", used, Host(i))
		}
	}
}

// Full returns a Bench with hosts of 4 VCPU each. Each host is filled by two preemptible instances
// of 2 VCPU: v0 and v1 are on host 0, v2 and v3 on host 1, and so on.
func Full(t *testing.T, hosts int) *Bench {
	t.Helper()
	c := NewCloud(slices.Repeat([]int64{4}, hosts)...)
	for i := range hosts {
		for n := range 2 {
			c.Preemptible(Preemptible(2*i+n), i, 2)
		}
	}
	return New(t, c, Never)
}

// Preemptible returns the id of a preemptible instance.
func Preemptible(n int) string { return "v" + string(rune('0'+n)) }

// Untouched checks the same as Unharmed, and that no owner got a notice and no instance was ordered
// to leave.
func (b *Bench) Untouched(t *testing.T, ids ...string) {
	t.Helper()
	b.Unharmed(t, ids...)
	for _, id := range ids {
		if s := b.Servers[id]; s != nil && (s.Told > 0 || len(s.Warned) > 0) {
			t.Errorf("%s was told to leave %d times and warned %d times", id, s.Told, len(s.Warned))
		}
	}
}

// Unharmed checks that the instances exist and still have their VCPUs allocated on their hosts.
func (b *Bench) Unharmed(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if b.Servers[id] == nil {
			t.Errorf("%s is gone", id)
			continue
		}
		b.Has(t, id, map[string]int64{b.Servers[id].Host: 2})
	}
}

// Gone checks that the instances and their allocations are gone.
func (b *Bench) Gone(t *testing.T, ids ...string) {
	t.Helper()
	for _, id := range ids {
		if b.Servers[id] != nil {
			t.Errorf("%s is still there", id)
		}
		b.Has(t, id, map[string]int64{})
	}
}

// MustSweep carries out the rollbacks in the ledger, which must succeed.
func (b *Bench) MustSweep(t *testing.T) {
	t.Helper()
	if err := b.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// Count returns how many of the calls have a name.
func Count(calls []string, call string) (n int) {
	for _, one := range calls {
		if one == call {
			n++
		}
	}
	return n
}
