// SPDX-License-Identifier: Apache-2.0

package fence_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/fence"
)

var (
	someHosts = []string{"a", "b", "c", "gone"} // gone is not in the snapshot
	someIDs   = []string{"r1", "r2", "r3", "r4"}
)

var liveStatuses = []reservation.Status{reservation.Pending, reservation.Starting, reservation.Active, reservation.Ending}

// promises draws reservations that may contradict each other.
var promises = rapid.Custom(func(t *rapid.T) (live []reservation.Reservation) {
	for _, id := range someIDs[:rapid.IntRange(0, len(someIDs)).Draw(t, "reservations")] {
		from := span.Instant(rapid.IntRange(1, 20).Draw(t, "start"))
		r := reservation.Reservation{
			ID: id, ProjectID: "p" + id, Status: rapid.SampledFrom(liveStatuses).Draw(t, "status"),
			Span:  span.New(from, int64(rapid.IntRange(1, 10).Draw(t, "length"))),
			Terms: reservation.Terms{Kind: rapid.SampledFrom(reservation.HostKinds).Draw(t, "kind"), Resources: resource.Vector{VCPUs: 1}},
		}
		if r.Kind == reservation.Hosts {
			r.Resources = resource.Vector{}
		}
		for _, host := range rapid.SliceOfNDistinct(rapid.SampledFrom(someHosts), 1, 3, rapid.ID).Draw(t, "hosts") {
			c := reservation.Claim{Host: host, Span: r.Span}
			if rapid.Bool().Draw(t, "given up early") {
				c.Span.End = max(c.Span.Start+1, c.Span.End-3)
			}
			if r.Kind == reservation.Instances {
				c.Slices = rapid.IntRange(1, 3).Draw(t, "slices")
			}
			r.Claims = append(r.Claims, c)
		}
		live = append(live, r)
	}
	return live
})

var someRules = rapid.Custom(func(t *rapid.T) fence.Rules {
	seconds := rapid.SampledFrom([]int64{0, 3, 10, fence.Forever})
	return fence.Rules{
		Ahead: seconds.Draw(t, "ahead"), Prepare: seconds.Draw(t, "prepare"),
		Pool: rapid.Bool().Draw(t, "closed pool"), Mirror: rapid.SampledFrom([]string{"", "freepool"}).Draw(t, "mirror"),
	}
})

// wanted draws promises and returns the desired layout for them.
func wanted(t *rapid.T) (live []reservation.Reservation, now span.Instant, l fence.Layout) {
	live, now = promises.Draw(t, "live"), span.Instant(rapid.IntRange(1, 30).Draw(t, "now"))
	pool := host("c", 8, 8, 8)
	pool.Reservable = true
	hosts := snapshot(t, host("a", 8, 8, 8), host("b", 4, 16, 8), pool)
	return live, now, fence.Desired(live, hosts, now, someRules.Draw(t, "rules"))
}

func lasts(r reservation.Reservation, c reservation.Claim, now span.Instant) bool {
	return c.Span.Start <= now && (now < c.Span.End || c.Span.End == r.Span.End)
}

func TestEveryHostWithARunningClaimIsInTheFence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, now, l := wanted(t)
		for _, r := range live {
			for _, c := range r.Claims {
				if c.Host == "gone" || !lasts(r, c, now) {
					continue
				}
				if !slices.Contains(l.Aggregates[fence.Aggregate].Hosts, c.Host) || !slices.Contains(l.Traits[c.Host], fence.Reserved) {
					t.Errorf("host %s has a claim of %s, which is %s, but is not in the fence", c.Host, r.ID, r.Status)
				}
			}
		}
	})
}

func TestAReservationOfHostsSharesItsHostsWithNoOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, _, l := wanted(t)
		for _, r := range live {
			for _, h := range l.Aggregates[fence.AggregatePrefix+r.ID].Hosts {
				if !slices.Contains(l.Aggregates[fence.Aggregate].Hosts, h) {
					t.Errorf("host %s is in the aggregate of %s, but not in the fence", h, r.ID)
				}
				for _, o := range live {
					if o.ID != r.ID && r.Kind == reservation.Hosts && slices.Contains(l.Aggregates[fence.AggregatePrefix+o.ID].Hosts, h) {
						t.Errorf("host %s is in the aggregates of %s and of %s", h, r.ID, o.ID)
					}
				}
			}
		}
	})
}

// admits reports whether Nova's scheduler admits a flavor on a host: the host has the required
// traits and the reservation's resources, and the flavor has every trait that the metadata of
// the host's aggregates require (nova/scheduler/request_filter.py, isolate_aggregates).
func admits(l fence.Layout, host string, f inventory.Flavor) bool {
	for spec := range f.ExtraSpecs {
		kind, name, _ := strings.Cut(spec, ":")
		if kind == "trait" && !slices.Contains(l.Traits[host], name) || kind == "resources" && l.Rooms[host][name] == 0 && strings.HasPrefix(name, fence.OwnPrefix) {
			return false
		}
	}
	for _, a := range l.Aggregates {
		for key := range a.Metadata {
			if strings.HasPrefix(key, "trait:") && slices.Contains(a.Hosts, host) && f.ExtraSpecs[key] != "required" {
				return false
			}
		}
	}
	return true
}

func TestNovaLetsTheOwnerOnItsHostsAndNobodyElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		live, now, l := wanted(t)
		for _, h := range []string{"a", "b", "c"} {
			var holders []reservation.Reservation
			for _, r := range live {
				holds := func(c reservation.Claim) bool { return c.Host == h && lasts(r, c, now) }
				if slices.ContainsFunc(r.Claims, holds) {
					holders = append(holders, r)
				} else if !slices.Contains(r.HostNames(), h) && admits(l, h, l.Flavors[r.ID]) && l.Flavors[r.ID].ID != "" {
					t.Errorf("host %s admits instances of %s, which has no claim on it", h, r.ID)
				}
			}
			if len(holders) > 0 && admits(l, h, inventory.Flavor{}) {
				t.Errorf("promised host %s admits instances of no reservation", h)
			}
			if len(holders) != 1 {
				continue
			}
			r := holders[0]
			if begun := r.Status == reservation.Active || r.Status == reservation.Ending; admits(l, h, l.Flavors[r.ID]) != begun {
				t.Errorf("host %s, claimed by %s alone, admits its instances: %v; the reservation is %s", h, r.ID, !begun, r.Status)
			}
		}
	})
}

// anyLayout draws a layout as operators and unfinished work may leave it.
var anyLayout = rapid.Custom(func(t *rapid.T) fence.Layout {
	l := fence.Layout{Aggregates: map[string]inventory.Aggregate{}, Traits: map[string][]string{}, Rooms: map[string]map[string]int64{}, Flavors: map[string]inventory.Flavor{}}
	subset := func(of []string, what string) []string {
		return slices.Sorted(slices.Values(rapid.SliceOfDistinct(rapid.SampledFrom(of), rapid.ID).Draw(t, what)))
	}
	names := []string{fence.Reserved, fence.Shared, fence.OwnName("r1"), fence.OwnName("r2")}
	for _, name := range subset([]string{fence.Aggregate, fence.AggregatePrefix + "r1", fence.AggregatePrefix + "r2"}, "aggregates") {
		a := inventory.Aggregate{Name: name, Metadata: map[string]string{}, Hosts: subset(someHosts, "members")}
		for _, key := range subset([]string{"trait:" + fence.Reserved, "trait:" + fence.OwnName("r1"), inventory.ReservationMark, "ssd"}, "metadata") {
			a.Metadata[key] = rapid.SampledFrom([]string{"required", "r1"}).Draw(t, "value")
		}
		l.Aggregates[name] = a
	}
	for _, host := range subset(someHosts, "hosts") {
		if traits := subset(names, "traits"); len(traits) > 0 {
			l.Traits[host] = traits
		}
		for _, class := range subset(names[2:], "classes") {
			if l.Rooms[host] == nil {
				l.Rooms[host] = map[string]int64{}
			}
			l.Rooms[host][class] = int64(rapid.IntRange(1, 3).Draw(t, "rooms"))
		}
	}
	for _, id := range subset([]string{"r1", "r1-small", "r2"}, "flavors") {
		f := inventory.Flavor{ID: id, Name: fence.FlavorPrefix + id, Resources: resource.Vector{VCPUs: 1}, ExtraSpecs: map[string]string{}}
		for _, spec := range subset([]string{"trait:" + fence.Reserved, inventory.ReservationMark, "hw:cpu_policy"}, "extra specs") {
			f.ExtraSpecs[spec] = rapid.SampledFrom([]string{"required", "r1"}).Draw(t, "value")
		}
		l.Flavors[id] = f
	}
	l.TraitNames, l.ClassNames = subset(names, "trait names"), subset(names[2:], "class names")
	for _, host := range someHosts {
		l.TraitNames = append(l.TraitNames, l.Traits[host]...)
		l.ClassNames = append(l.ClassNames, slices.Collect(maps.Keys(l.Rooms[host]))...)
	}
	l.TraitNames, l.ClassNames = distinct(l.TraitNames), distinct(l.ClassNames)
	return l
})

func distinct(list []string) []string { return slices.Compact(slices.Sorted(slices.Values(list))) }

// desiredLayout draws a desired layout: one for promises, or any.
func desiredLayout(t *rapid.T) fence.Layout {
	if rapid.Bool().Draw(t, "of promises") {
		_, _, l := wanted(t)
		return l
	}
	return anyLayout.Draw(t, "desired")
}

func TestTheStepsMakeTheActualLayoutTheDesiredOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, want := anyLayout.Draw(t, "actual"), desiredLayout(t)
		g := lay(before)
		for _, s := range fence.Diff(before, want) {
			if err := g.carry(s); err != nil {
				t.Fatalf("%s, with the reason %q: %v", s.Action, s.Reason, err)
			}
			if s.Reason == "" {
				t.Errorf("%s has no reason", s.Action)
			}
		}
		g.compare(t, before, want)
		if rest := fence.Diff(g.layout(), want); len(rest) > 0 {
			t.Errorf("after all steps, these steps remain: %v", rest)
		}
	})
}

func TestNothingIsToBeDoneWhereAllIsAsDesired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := desiredLayout(t)
		if steps := fence.Diff(l, l); len(steps) > 0 {
			t.Errorf("the steps are %v", steps)
		}
	})
}

func TestStepsThatAddTakeNothingAwayAndStandForThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, want := anyLayout.Draw(t, "actual"), desiredLayout(t)
		g := lay(before)
		for _, s := range fence.Diff(before, want) {
			if !s.Adds() {
				continue
			}
			if err := g.carry(s); err != nil {
				t.Fatalf("%s without those that take away: %v", s.Action, err)
			}
		}
		for _, s := range fence.Diff(g.layout(), want) {
			if s.Adds() {
				t.Errorf("after the steps that add, %s remains: %s", s.Action, s.Reason)
			}
		}
		for _, s := range fence.Diff(g.layout(), before) {
			if s.Adds() && s.Action != fence.MarkAggregate && s.Action != fence.MarkFlavor && s.Action != fence.OpenFlavor {
				t.Errorf("a step that adds removed something: %s", s.Reason)
			}
		}
	})
}

func TestTheStepsForOneReservationTouchNoOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before := anyLayout.Draw(t, "actual")
		live, _, want := wanted(t)
		for _, r := range live {
			for _, s := range fence.For(fence.Diff(before, want), &r) {
				text := fmt.Sprint(s.Aggregate.Name, s.Traits, s.Rooms, s.Flavor.ID, s.Name)
				for _, o := range someIDs {
					if o != r.ID && (strings.Contains(text, o) || strings.Contains(text, fence.OwnName(o))) {
						t.Errorf("a step for %s is %s on %s", r.ID, s.Action, text)
					}
				}
			}
		}
	})
}
