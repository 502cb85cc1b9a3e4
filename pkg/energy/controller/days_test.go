// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/power/simulated"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// days is a scene in which things happen at random.
type days struct {
	*scene
	rand *rand.Rand
	// ill is until when a host may be late because something was wrong with it or with all hosts.
	ill     map[string]span.Instant
	sick    map[string]bool // hosts that have trouble now
	away    bool            // something that all hosts need is away
	watched int             // reservations whose start was seen
	news    []string
}

// recovery is how many seconds after a fault a host may still be late: the fault may have led to
// retries, or to a failed host that is tried again an hour later.
const recovery = 3 * 3600

func (d *days) note(format string, args ...any) {
	d.news = append(d.news, fmt.Sprintf("%v ", now().Time().UTC().Format("15:04:05"))+fmt.Sprintf(format, args...))
}

func (d *days) suffer(hosts ...string) {
	for _, host := range hosts {
		d.ill[host] = now().Add(recovery)
	}
}

func (d *days) names() []string { return slices.Sorted(maps.Keys(d.servers)) }

func (d *days) any() string { all := d.names(); return all[d.rand.IntN(len(all))] }

// happen lets one event happen.
func (d *days) happen() {
	host := d.any()
	one := d.servers[host]
	switch d.rand.IntN(14) {
	case 0, 1, 2:
		start := now().Add(600 + d.rand.Int64N(7200))
		if d.free(host, start.Add(-1800), start.Add(5400)) {
			d.note("reserve %s from %v", host, start)
			d.reserve(start, 900+d.rand.Int64N(2700), host)
		}
	case 3, 4, 5, 6:
		d.set(func() {
			if one.machine.Up() && one.disabled == "" && d.open(host) {
				one.guests++
				d.note("a guest comes to %s", host)
			}
		})
	case 7, 8, 9:
		d.set(func() { one.guests = 0 })
	case 10:
		trouble := []simulated.Trouble{{NeverBoots: true}, {NeverStops: true}, {Deaf: true}, {Late: 300e9}, {Slow: 15e9}, {Lies: true}, {Flaps: true},
			{Broken: "the BMC does not answer"}, {Untouchable: "it is in maintenance"}}[d.rand.IntN(9)]
		d.note("trouble of %s: %+v", host, trouble)
		one.machine.Trouble(trouble)
		d.sick[host] = true
	case 11:
		d.note("all machines are well")
		for name := range d.sick {
			d.servers[name].machine.Trouble(simulated.Trouble{})
			d.suffer(name)
		}
		clear(d.sick)
	case 12:
		away := d.rand.IntN(2) == 0
		d.note("all away: %v", away)
		d.set(func() { d.agentLost, d.novaAway = away && d.rand.IntN(2) == 0, away })
		if d.away && !away {
			d.suffer(d.names()...)
		}
		d.away = away
	case 13:
		switch d.rand.IntN(3) {
		case 0:
			d.note("another controller takes over")
			d.set(func() { d.ledger.mu.Lock(); d.ledger.holder = ""; d.ledger.mu.Unlock() })
		case 1:
			if one.machine.State() == energy.Off {
				d.note("somebody switches %s on", host)
				one.machine.PressButton(energy.On)
				d.suffer(host)
			}
		case 2:
			d.set(func() { d.untrusted = []string{"", "hosts are gone"}[d.rand.IntN(2)] })
		}
	}
}

// free reports whether a host has no claim between two times.
func (d *days) free(host string, from, to span.Instant) bool {
	for _, r := range d.live {
		for _, c := range r.Claims {
			if c.Host == host && c.Span.Start < to && from < c.Span.End {
				return false
			}
		}
	}
	return true
}

// open reports whether other instances may come to a host: no reservation is near.
func (d *days) open(host string) bool {
	return d.free(host, now(), now().Add(3600))
}

// look checks the starts since then: each host is ready, or a fault excuses it and an alarm
// reports it.
func (d *days) look(since span.Instant) {
	d.t.Helper()
	for _, r := range d.live {
		if r.Span.Start <= since || r.Span.Start > now() {
			continue
		}
		host := r.Claims[0].Host
		d.watched++
		d.set(func() { d.servers[host].guests = 0 })
		record := d.record(host)
		up := record.Phase == energy.Awake && d.servers[host].machine.Up() && d.closed(host) == ""
		switch {
		case up:
		case now() > d.ill[host] && !d.sick[host] && !d.away && record.Quarantine == "":
			d.t.Fatalf("the reservation at %v is late: host %s is %q, closed with %q\n%s\n%s", r.Span.Start, host, record.Phase, d.closed(host),
				strings.Join(d.news, "\n"), d.story(host))
		case !slices.ContainsFunc(d.alarms(), func(a string) bool { return strings.HasSuffix(a, host) || a == "agent_lost" || a == "halted" }):
			d.t.Fatalf("the reservation at %v is late without an alarm: host %s is %q; alarms %v\n%s\n%s", r.Span.Start, host, record.Phase, d.alarms(),
				strings.Join(d.news, "\n"), d.story(host))
		}
	}
}

// explained checks that the audit has every phase of each host.
func (d *days) explained() {
	d.t.Helper()
	next := map[string][]string{
		"awake": {"draining"}, "draining": {"awake", "stopping"}, "stopping": {"asleep", "awake", "draining"},
		"asleep": {"waking"}, "waking": {"awake", "failed", "asleep"}, "failed": {"waking"},
	}
	for _, host := range d.names() {
		entries, err := d.ledger.Audit(d.t.Context(), host, 0, 1<<20)
		if err != nil {
			d.t.Fatal(err)
		}
		at := "awake"
		for _, e := range slices.Backward(entries) {
			if e.Kind != energy.EntryPhase {
				continue
			}
			phase, reason, _ := strings.Cut(e.Text, ": ")
			if !slices.Contains(next[at], phase) || reason == "" {
				d.t.Errorf("%s: after %s comes %q", host, at, e.Text)
			}
			at = phase
		}
		if now := string(d.phase(host)); now != at && !(now == "" && at == "awake") {
			d.t.Errorf("%s is %q, and the audit ends with %q", host, now, at)
		}
	}
}

//make:test-drawn
func TestForDaysNoHostIsLostAndNoReservationIsLateUnlessSomethingWasWrongAndTold(t *testing.T) {
	seeds := 2
	if testing.Short() {
		seeds = 1
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &days{rand: rand.New(rand.NewPCG(uint64(seed), 1)), ill: map[string]span.Instant{}, sick: map[string]bool{}}
				d.scene = newScene(t, 5, func(o *controller.Options) {
					o.MostFailed = 0
					o.Switching.Hard = seed%2 == 1
				})
				o := d.options
				o.Leases, o.Replica = lessee{d.ledger, "two"}, "two"
				d.start(controller.New(o))
				last := now()
				for len(d.news) < 160 {
					d.happen()
					d.run(30 + d.rand.IntN(600))
					d.look(last)
					last = now()
				}
				d.explained()
				if d.watched < 10 || !strings.Contains(d.story(""), "asleep") {
					t.Errorf("in all these days %d reservations began", d.watched)
				}
			})
		})
	}
}
