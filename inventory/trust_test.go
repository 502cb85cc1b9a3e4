// SPDX-License-Identifier: Apache-2.0

package inventory_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// rules are the trust rules of the tests: of 10 hosts, two may change.
var rules = inventory.TrustRules{MaxChangePercent: 20, SettleTime: 600, StaleAfter: 300}

// fleet returns n hosts a, b, c, … with a guest each.
func fleet(n int) []inventory.Host {
	hosts := make([]inventory.Host, n)
	for i := range hosts {
		hosts[i] = inventory.Host{
			Name: string(rune('a' + i)), Capacity: resource.Vector{VCPUs: 8}, Used: resource.Vector{VCPUs: 1}, InstanceCount: 1,
		}
	}
	return hosts
}

// having returns the hosts after change is applied to those whose letter is in names.
func having(hosts []inventory.Host, names string, change func(h *inventory.Host)) []inventory.Host {
	changed := slices.Clone(hosts)
	for i := range changed {
		if strings.Contains(names, changed[i].Name) {
			change(&changed[i])
		}
	}
	return changed
}

func down(h *inventory.Host)   { h.Problem = "its nova-compute is down" }
func failed(h *inventory.Host) { h.Power = inventory.PowerFailed }
func asleep(h *inventory.Host) {
	h.Power, h.Problem = inventory.PowerSleeping, "its nova-compute is down"
}
func bare(h *inventory.Host)  { h.InstanceCount = 0 }
func empty(h *inventory.Host) { h.InstanceCount, h.Used = 0, resource.Vector{} }

const everyHost = "abcdefghij"

func TestASuddenLossIsNotBelieved(t *testing.T) {
	ten := fleet(10)
	for name, tc := range map[string]struct {
		trusted, listed []inventory.Host
		overrides       map[string]inventory.Override
		want            string
	}{
		"the same":                {trusted: ten, listed: fleet(10)},
		"in another order":        {trusted: ten, listed: reversed(ten)},
		"more hosts":              {trusted: fleet(2), listed: ten},
		"two of ten gone":         {trusted: ten, listed: ten[2:]},
		"three of ten gone":       {trusted: ten, listed: ten[3:], want: "3 of 10 hosts are gone: a, b, c"},
		"nearly all gone":         {trusted: ten, listed: ten[9:], want: "9 of 10 hosts are gone: a, b, c and 6 more"},
		"others in their place":   {trusted: ten[:5], listed: ten[5:], want: "5 of 5 hosts are gone: a, b, c and 2 more"},
		"one may always go":       {trusted: fleet(2), listed: fleet(1)},
		"one may always fail":     {trusted: fleet(1), listed: having(fleet(1), "a", down)},
		"two of two fail":         {trusted: fleet(2), listed: having(fleet(2), "ab", down), want: "2 of 2 hosts have failed: a (its nova-compute is down), b (its nova-compute is down)"},
		"marked as failed":        {trusted: fleet(2), listed: having(fleet(2), "ab", failed), want: "2 of 2 hosts have failed: a (it is marked as failed), b (it is marked as failed)"},
		"gone and failed add up":  {trusted: ten, listed: having(ten, "bc", down)[1:], want: "1 of 10 hosts are gone: a; 2 of 10 hosts have failed: b (its nova-compute is down), c (its nova-compute is down)"},
		"failed before":           {trusted: having(ten, everyHost, down), listed: having(ten, everyHost, down)},
		"for another reason":      {trusted: having(ten, everyHost, down), listed: having(ten, everyHost, failed)},
		"well again":              {trusted: having(ten, everyHost, down), listed: ten},
		"asleep":                  {trusted: ten, listed: having(ten, everyHost, asleep)},
		"no guest left":           {trusted: ten, listed: having(ten, everyHost, bare), want: "all 10 instances are gone, but their resources are not free"},
		"one guest left":          {trusted: ten, listed: having(ten, everyHost[1:], bare)},
		"guests gone for good":    {trusted: ten, listed: having(ten, everyHost, empty)},
		"there was no guest":      {trusted: having(ten, everyHost, bare), listed: having(ten, everyHost, bare)},
		"an admin says asleep":    {trusted: ten, listed: having(ten, "abc", down), overrides: powered("ab", inventory.PowerSleeping)},
		"an admin says failed":    {trusted: ten, listed: ten, overrides: powered(everyHost, inventory.PowerFailed)},
		"an admin says on":        {trusted: having(ten, everyHost, asleep), listed: having(ten, everyHost, asleep), overrides: powered(everyHost, inventory.PowerOn)},
		"an admin says on, wrong": {trusted: ten, listed: having(ten, "abc", asleep), overrides: powered("abc", inventory.PowerOn), want: "3 of 10 hosts have failed: a (its nova-compute is down), b (its nova-compute is down), c (its nova-compute is down)"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := rules.Judge(tc.trusted, tc.listed, tc.overrides); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

func reversed(hosts []inventory.Host) []inventory.Host {
	backwards := slices.Clone(hosts)
	slices.Reverse(backwards)
	return backwards
}

func powered(names string, power inventory.Power) map[string]inventory.Override {
	overrides := make(map[string]inventory.Override)
	for _, name := range strings.Split(names, "") {
		overrides[name] = inventory.Override{Power: &power}
	}
	return overrides
}

// watched is a snapshot cache over a cloud, with a clock and a log.
type watched struct {
	*inventory.SnapshotCache
	cloud *cloud
	now   span.Instant
	log   strings.Builder
}

func watch(t *testing.T, hosts []inventory.Host) *watched {
	t.Helper()
	w := &watched{cloud: &cloud{hosts: hosts}, now: 1000}
	var err error
	w.SnapshotCache, err = inventory.OpenSnapshotCache(t.Context(), w.cloud, inventory.SnapshotCacheOptions{
		Hosts: w.cloud, Properties: w.cloud, Rules: rules, Now: func() span.Instant { return w.now },
		Log: slog.New(slog.NewTextHandler(&w.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// after advances the clock by seconds, reads hosts, and returns the doubt.
func (w *watched) after(t *testing.T, seconds span.Instant, hosts []inventory.Host) string {
	t.Helper()
	w.now += seconds
	w.cloud.hosts, w.cloud.err = hosts, nil
	if err := w.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w.Untrusted(w.now)
}

func TestDoubtEndsWhenAReadingHasSettledOrTheHostsAreBack(t *testing.T) {
	ten := fleet(10)
	seven := ten[3:]
	type reading struct {
		after span.Instant
		hosts []inventory.Host
		doubt bool
	}
	for name, readings := range map[string][]reading{
		"back":                     {{10, seven, true}, {10, ten, false}, {10, seven, true}},
		"settled":                  {{10, seven, true}, {599, seven, true}, {1, seven, false}, {10, seven, false}},
		"settled, then back":       {{10, seven, true}, {600, seven, false}, {10, ten, false}, {10, seven, true}},
		"guests come and go":       {{10, seven, true}, {300, having(seven, "d", empty), true}, {300, seven, false}},
		"worse begins anew":        {{10, seven, true}, {590, ten[4:], true}, {10, ten[4:], true}, {590, ten[4:], false}},
		"other hosts begin anew":   {{10, seven, true}, {590, ten[:7], true}, {10, ten[:7], true}},
		"better begins anew":       {{10, ten[5:], true}, {590, seven, true}, {599, seven, true}, {1, seven, false}},
		"one after the other":      {{10, ten[1:], false}, {10, ten[2:], false}, {10, ten[3:], true}, {599, ten[3:], true}, {1, ten[3:], false}},
		"slowly, one by one":       {{10, ten[1:], false}, {600, ten[2:], false}, {600, ten[3:], false}},
		"failed one by one":        {{10, having(ten, "a", down), false}, {10, having(ten, "ab", down), false}, {10, having(ten, "abc", down), true}},
		"failed, then gone":        {{10, having(ten, "ab", down), false}, {10, ten[2:], false}, {580, ten[4:], true}, {10, ten[2:], false}, {10, ten[3:], false}},
		"in turn, each well again": {{10, having(ten, "ab", down), false}, {10, having(ten, "cd", down), false}, {10, having(ten, "ef", down), false}},
		"for long, then gone":      {{10, having(ten, "ab", down), false}, {600, having(ten, "ab", down), false}, {10, having(ten, "cd", down)[2:], false}},
		"back to nearly all":       {{10, seven, true}, {10, ten[1:], false}, {10, seven, true}, {10, ten[2:], false}},
		"failed, and gone at once": {{10, having(ten, "abc", down), true}, {590, seven, true}, {10, seven, true}},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t, ten)
			for i, r := range readings {
				if got := w.after(t, r.after, r.hosts); (got != "") != r.doubt {
					t.Errorf("reading %d: doubt is %q", i+1, got)
				}
				if w.Snapshot().Len() != len(r.hosts) {
					t.Errorf("reading %d: the snapshot has %d hosts, want the %d that were read", i+1, w.Snapshot().Len(), len(r.hosts))
				}
			}
		})
	}
}

func TestWithoutASettleTimeEveryReadingIsBelieved(t *testing.T) {
	w := &cloud{hosts: fleet(10)}
	o := settings(w)
	o.Rules.SettleTime = 0
	k, err := inventory.OpenSnapshotCache(t.Context(), w, o)
	if err != nil {
		t.Fatal(err)
	}
	w.hosts = fleet(1)
	if err := k.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := k.Untrusted(1000); got != "" {
		t.Errorf("doubt is %q", got)
	}
}

func TestHostsThatCannotBeReadGrowDoubtful(t *testing.T) {
	w := watch(t, fleet(2))
	w.cloud.err = errors.New("the cloud is away")
	for age, want := range map[span.Instant]string{0: "", 300: "", 301: "the hosts were last read 5m1s ago"} {
		w.now = 1000 + age
		if err := w.Refresh(t.Context()); err == nil {
			t.Error("the cloud is unreachable, but Refresh returns no error")
		}
		if got := w.Untrusted(w.now); got != want {
			t.Errorf("after %d s: doubt is %q, want %q", age, got, want)
		}
	}
	if got := w.after(t, 0, fleet(2)); got != "" {
		t.Errorf("after a successful reading, doubt is %q", got)
	}
	if got := w.Untrusted(w.now + 301); got == "" {
		t.Error("a cache that is never refreshed stays trusted")
	}
}

func TestAnEmptyListingKeepsTheHostsAndIsDoubt(t *testing.T) {
	w := watch(t, fleet(2))
	w.cloud.hosts = nil
	if err := w.Refresh(t.Context()); err == nil || w.Snapshot().Len() != 2 {
		t.Errorf("error %v, %d hosts", err, w.Snapshot().Len())
	}
	if got := w.Untrusted(w.now); got != "the inventory lists no hosts" {
		t.Errorf("doubt is %q", got)
	}
	if got := w.after(t, 10, fleet(2)); got != "" {
		t.Errorf("with hosts again, doubt is %q", got)
	}
}

func TestAnEmptyListingLetsNothingSettle(t *testing.T) {
	ten := fleet(10)
	w := watch(t, ten)
	w.after(t, 10, ten[3:])
	w.now += 300
	w.cloud.hosts = nil
	if err := w.Refresh(t.Context()); err == nil {
		t.Fatal("an empty listing returns no error")
	}
	if got := w.after(t, 300, ten[3:]); got == "" {
		t.Error("trusted 600 s after its first reading, despite an empty one in between")
	}
}

func TestWhatAnAdminSaysOfPowerEndsDoubt(t *testing.T) {
	ten := fleet(10)
	w := watch(t, ten)
	w.cloud.overrides = make(map[string]inventory.Override)
	if got := w.after(t, 10, having(ten, "abc", down)); got == "" {
		t.Fatal("three of ten hosts are down, but the reading is trusted")
	}
	asleep := inventory.PowerSleeping
	if err := w.SetHost(t.Context(), "a", inventory.Override{Power: &asleep}, nil); err != nil {
		t.Fatal(err)
	}
	if got := w.after(t, 10, having(ten, "abc", down)); got != "" {
		t.Errorf("two of ten are down, doubt is %q", got)
	}
}

// borrowed is a source whose hosts were read by another process.
type borrowed struct {
	*cloud
	age int64
}

func (b borrowed) Age() int64 { return b.age }

func TestTheAgeOfWhatSomebodyElseHasReadCounts(t *testing.T) {
	c := &cloud{hosts: fleet(2)}
	o := settings(c)
	o.Rules = rules
	k, err := inventory.OpenSnapshotCache(t.Context(), borrowed{c, 200}, o)
	if err != nil {
		t.Fatal(err)
	}
	if got := k.ReadAt(); got != 800 {
		t.Errorf("the hosts were read at %d, want 800", got)
	}
	for after, doubtful := range map[span.Instant]bool{0: false, 100: false, 101: true} {
		if got := k.Untrusted(1000 + after); (got != "") != doubtful {
			t.Errorf("after %d s: doubt is %q", after, got)
		}
	}
}

func TestTheLogSaysOnceThatDoubtBeginsAndThatItEnds(t *testing.T) {
	ten := fleet(10)
	w := watch(t, ten)
	for _, hosts := range [][]inventory.Host{ten, ten[3:], ten[4:], ten[3:], ten, ten} {
		w.after(t, 10, hosts)
	}
	var got []string
	for line := range strings.Lines(w.log.String()) {
		_, entry, _ := strings.Cut(strings.TrimSpace(line), "level=")
		got = append(got, entry)
	}
	want := []string{
		`WARN msg="the inventory is untrusted: nothing is healed, cleaned up or switched off" reason="3 of 10 hosts are gone: a, b, c"`,
		`INFO msg="the inventory is trusted again"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}
