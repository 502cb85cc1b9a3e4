// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// TrustRules decide which readings of the hosts are trusted. A wiped database, a missing broker
// or a partial answer look as if hosts and instances had disappeared; until that is certain,
// nothing may be taken away.
type TrustRules struct {
	// MaxChangePercent is the share of the working hosts that may be gone or failed within the
	// settle time. A single host is always allowed.
	MaxChangePercent int
	// SettleTime, in seconds, is how long a reading must stay the same until it is trusted
	// anyway, and how long a lost host counts together with hosts lost after it. 0 means at
	// once, and not at all.
	SettleTime int64
	// StaleAfter is how old a reading may grow, in seconds; 0 means any age.
	StaleAfter int64
}

// sighting is the last state of a host in a trusted reading.
type sighting struct {
	*Host              // never written to, as it may be a part of the reading
	lost  span.Instant // when it was found gone or failed; 0 while it works
}

// seen returns the hosts as sightings.
func seen(hosts []Host) []sighting {
	all := make([]sighting, len(hosts))
	for i := range hosts {
		all[i].Host = &hosts[i]
	}
	return all
}

// setback is the part of a reading that is not trusted. The zero setback is none.
type setback struct {
	hosts        int      // hosts before the reading
	gone, failed []string // sorted names of hosts
	failures     []string // the reasons of those failed, in the same order
	instances    int      // instances before the reading, if all are gone
}

// judge returns what is worse in a reading than in the trusted one: the hosts that are gone or have failed, if they
// are too many, and the number of instances in the trusted one, if the reading has none.
func (r TrustRules) judge(trusted []sighting, listed []Host, overrides map[string]Override) setback {
	worse, hadInstances := setback{hosts: len(trusted)}, 0
	find := finder(listed)
	for i := range trusted {
		name := trusted[i].Name
		hadInstances += trusted[i].InstanceCount
		if trusted[i].failureUnder(overrides[name]) != "" {
			continue
		}
		h := find(i, name)
		if h == nil {
			worse.gone = append(worse.gone, name)
		} else if failure := h.failureUnder(overrides[name]); failure != "" {
			worse.failed = append(worse.failed, name)
			worse.failures = append(worse.failures, failure)
		}
	}
	if len(worse.gone)+len(worse.failed) <= max(1, len(trusted)*r.MaxChangePercent/100) {
		worse.gone, worse.failed, worse.failures = nil, nil, nil
	}
	if lostInstances(listed) {
		worse.instances = hadInstances
	}
	return worse
}

// finder returns a function that returns the host with a name, nil if there is none. place is where the host is in most
// readings, which list the hosts in the same order.
func finder(listed []Host) func(place int, name string) *Host {
	byName := sync.OnceValue(func() map[string]*Host {
		all := make(map[string]*Host, len(listed))
		for i := range listed {
			all[listed[i].Name] = &listed[i]
		}
		return all
	})
	return func(place int, name string) *Host {
		if place < len(listed) && listed[place].Name == name {
			return &listed[place]
		}
		return byName()[name]
	}
}

// failureUnder returns the host's failure with the power state of o, if o sets one.
func (h *Host) failureUnder(o Override) string {
	set := Host{Power: h.Power, Problem: h.Problem}
	o.applyPower(&set)
	return set.Failure()
}

// lostInstances reports whether the hosts have no instances although resources are in use.
// Instances that are really gone leave their resources free.
func lostInstances(hosts []Host) bool {
	return !slices.ContainsFunc(hosts, func(h Host) bool { return h.InstanceCount != 0 }) &&
		slices.ContainsFunc(hosts, func(h Host) bool { return !h.Used.IsZero() })
}

func (s setback) none() bool { return len(s.gone)+len(s.failed)+s.instances == 0 }

// same reports whether s and other name the same hosts and instances. The reasons of failures
// may differ.
func (s setback) same(other setback) bool {
	return s.instances == other.instances && slices.Equal(s.gone, other.gone) && slices.Equal(s.failed, other.failed)
}

// String returns the setback as a sentence; empty if there is none.
func (s setback) String() string {
	var parts []string
	if len(s.gone) > 0 {
		parts = append(parts, fmt.Sprintf("%d of %d hosts are gone: %s", len(s.gone), s.hosts, some(s.gone)))
	}
	if len(s.failed) > 0 {
		reasons := make([]string, len(s.failed))
		for i, name := range s.failed {
			reasons[i] = name + " (" + s.failures[i] + ")"
		}
		parts = append(parts, fmt.Sprintf("%d of %d hosts have failed: %s", len(s.failed), s.hosts, some(reasons)))
	}
	if s.instances > 0 {
		parts = append(parts, fmt.Sprintf("all %d instances are gone, but their resources are not free", s.instances))
	}
	return strings.Join(parts, "; ")
}

// some joins the first few words of a list.
func some(words []string) string {
	const most = 3
	if more := len(words) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), more)
	}
	return strings.Join(words, ", ")
}

// trust is the result of judging the readings so far.
type trust struct {
	rules TrustRules
	// trusted is the last trusted reading, nil before the first. Hosts that have failed or
	// gone since stay in it as they were when they worked, for the settle time: many hosts lost
	// one by one count together.
	trusted []sighting
	worse   setback      // of the reading after believed
	since   span.Instant // the instant since which worse is the same
	read    span.Instant // when the last reading began
	empty   bool         // whether the last reading had no hosts
}

// after returns the trust after a reading that began at read and is judged now.
func (t trust) after(listed []Host, overrides map[string]Override, read, now span.Instant) trust {
	next := trust{rules: t.rules, read: read}
	if t.trusted == nil {
		next.trusted = seen(listed)
		return next
	}
	trusted := t.trusted
	if t.worse.none() { // an untrusted reading settles as a whole
		trusted = t.recent(now)
	}
	worse := t.rules.judge(trusted, listed, overrides)
	since := now
	if worse.same(t.worse) {
		since = t.since
	}
	switch {
	case worse.none():
		next.trusted = remember(trusted, listed, overrides, now)
	case now < since.Add(t.rules.SettleTime):
		next.trusted, next.worse, next.since = trusted, worse, since
	default:
		next.trusted = seen(listed)
	}
	return next
}

// recent returns believed without the hosts lost longer ago than the settle time.
func (t trust) recent(now span.Instant) []sighting {
	return slices.DeleteFunc(slices.Clone(t.trusted), func(s sighting) bool {
		return s.lost != 0 && now >= s.lost.Add(t.rules.SettleTime)
	})
}

// remember returns listed, which is trusted, with the hosts that worked before and do not work
// now, sorted by name.
func remember(before []sighting, listed []Host, overrides map[string]Override, now span.Instant) []sighting {
	byName := func(a, b sighting) int { return cmp.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(before, byName) {
		before = slices.SortedFunc(slices.Values(before), byName)
	}
	believed := seen(listed)
	slices.SortFunc(believed, byName)
	at, there := 0, len(believed)
	for i := range before {
		was := &before[i]
		for at < there && believed[at].Name < was.Name {
			at++
		}
		if was.failureUnder(overrides[was.Name]) != "" {
			continue
		}
		lost := cmp.Or(was.lost, now)
		if at == there || believed[at].Name != was.Name {
			gone := *was.Host
			gone.InstanceCount = 0
			believed = append(believed, sighting{&gone, lost})
		} else if h := *believed[at].Host; h.failureUnder(overrides[h.Name]) != "" {
			h.Power, h.Problem = was.Power, was.Problem
			believed[at] = sighting{&h, lost}
		}
	}
	if len(believed) > there {
		slices.SortFunc(believed, byName)
	}
	return believed
}

// afterNothing returns the trust after a reading without hosts. A setback that was settling
// starts over.
func (t trust) afterNothing() trust {
	return trust{rules: t.rules, trusted: t.trusted, read: t.read, empty: true}
}

// untrusted returns the reason why the hosts are not trusted now; empty if they are.
func (t trust) untrusted(now span.Instant) string {
	var parts []string
	if t.empty {
		parts = append(parts, "the inventory lists no hosts")
	}
	if age := int64(now - t.read); t.rules.StaleAfter > 0 && age > t.rules.StaleAfter {
		parts = append(parts, fmt.Sprintf("the hosts were last read %v ago", time.Duration(age)*time.Second))
	}
	if worse := t.worse.String(); worse != "" {
		parts = append(parts, worse)
	}
	return strings.Join(parts, "; ")
}
