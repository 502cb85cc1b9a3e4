// SPDX-License-Identifier: Apache-2.0

package upkeep_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// readings is a cloud that returns the hosts of a ward, unless it is unreachable.
type readings struct {
	*ward
	inventory.HostSettings
	inventory.PropertySettings
	away error
}

func (r *readings) Hosts(context.Context) (hosts []inventory.Host, err error) {
	for _, h := range r.hosts {
		hosts = append(hosts, *h)
	}
	return hosts, r.away
}

func (r *readings) Overrides(context.Context) (map[string]inventory.Override, error) {
	return nil, nil
}

func (r *readings) Hidden(context.Context) (map[string]bool, error) { return nil, nil }

// begin starts a process that reads these hosts, and returns a function that advances its clock.
func (r *readings) begin(t *testing.T) (pass func(seconds int)) {
	t.Helper()
	k, err := inventory.OpenSnapshotCache(t.Context(), r, inventory.SnapshotCacheOptions{
		Hosts: r, Properties: r, Now: func() span.Instant { return r.now }, Log: slog.New(slog.DiscardHandler),
		Rules: inventory.TrustRules{MaxChangePercent: 20, SettleTime: 600, StaleAfter: 120}, Published: r.bookings.Observe,
	})
	if err != nil {
		t.Fatal(err)
	}
	r.bookings.Observe(k.Snapshot())
	job := upkeep.Healing(upkeep.HealingOptions{
		Booking: r.bookings, Leases: &r.others, Untrusted: func() string { return k.Untrusted(r.now) }, Read: k.ReadAt,
		Rules: upkeep.HealingRules{Grace: 60, Settle: 600, Window: 3600},
		Now:   func() span.Instant { return r.now }, Log: slog.New(slog.DiscardHandler),
	})
	return func(seconds int) {
		t.Helper()
		for range seconds / 5 {
			r.now += 5
			if err := k.Refresh(t.Context()); err != nil && !errors.Is(err, r.away) {
				t.Fatal(err)
			}
			r.bookings.CarryOut(t.Context())
			if err := job.Step(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// numbered returns the names h0, h1, … of n hosts.
func numbered(n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint("h", i))
	}
	return names
}

func TestAHostThatWasSeenDownOnceOnlyIsNotReplaced(t *testing.T) {
	r := &readings{ward: newWard(t, numbered(3)...)}
	id := r.book(t, 1, 0)
	pass := r.begin(t)
	pass(10)
	r.hosts["h0"].Problem = "its nova-compute is down"
	pass(5)
	r.away = errors.New("nova does not answer")
	pass(300)
	r.want(t, id, false, "h0")
	r.hosts["h0"].Problem, r.away = "", nil
	pass(300)
	r.want(t, id, false, "h0")
}

func TestARestartInDoubtHealsNothingThatHasNotSettled(t *testing.T) {
	names := numbered(10)
	r := &readings{ward: newWard(t, names...)}
	id := r.book(t, 2, 0)
	pass := r.begin(t)
	pass(10)
	for _, name := range names[:5] {
		delete(r.hosts, name)
	}
	pass(120)
	pass = r.begin(t)
	pass(70)
	r.hosts["h6"].Problem = "its nova-compute is down"
	other := r.book(t, 1, 300) // of hosts that the process has read as healthy
	r.want(t, other, false, "h5")
	r.hosts["h5"].Problem, r.hosts["h6"].Problem = "its nova-compute is down", ""
	pass(530)
	r.want(t, id, false, "h0", "h1")
	r.want(t, other, false, "h6")
	pass(5)
	r.want(t, id, false, "h7", "h8")
}

func TestHostsThatFailByAndByAreNotReplacedBeforeTheyHaveSettled(t *testing.T) {
	names := numbered(10)
	r := &readings{ward: newWard(t, names...)}
	id := r.book(t, 2, 0)
	pass := r.begin(t)
	pass(10)
	for _, name := range names[:7] {
		r.hosts[name].Problem = "its nova-compute is down"
		pass(20)
	}
	pass(580)
	r.want(t, id, false, "h0", "h1")
	pass(60)
	r.want(t, id, false, "h7", "h8")
}
