package inventory

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// DoubtRules say which readings of the hosts are not believed. A database that was
// wiped, a broker that is away or half an answer look as if hosts and guests had
// gone; while that is not sure, nothing may be taken away from anybody.
type DoubtRules struct {
	// MaxChangePercent is how many of the hosts that were well may be gone or failed
	// within the settle time; one may always.
	MaxChangePercent int
	// SettleTime is after how many seconds without a change a reading is believed
	// all the same, and for how many a host that was lost counts with those lost after
	// it; 0 is at once, and not at all.
	SettleTime int64
	// StaleAfter is how old a reading may grow, in seconds; 0 is any age.
	StaleAfter int64
}

// sighting is a host as it was.
type sighting struct {
	Host
	lost span.Instant // when it was found to be so no more; 0 while it is
}

func seen(hosts []Host) []sighting {
	all := make([]sighting, len(hosts))
	for i := range hosts {
		all[i].Host = hosts[i]
	}
	return all
}

// setback is what is not believed of a reading. The zero setback is nothing.
type setback struct {
	hosts        int      // that there were
	gone, failed []string // sorted names of hosts
	failures     []string // of those failed, in the same order
	guests       int      // that there were, where all are gone
}

func (r DoubtRules) judge(trusted []sighting, listed []Host, overrides map[string]Override) setback {
	worse, hadGuests := setback{hosts: len(trusted)}, 0
	now := make(map[string]*Host, len(listed))
	for i := range listed {
		now[listed[i].Name] = &listed[i]
	}
	for i := range trusted {
		name := trusted[i].Name
		hadGuests += trusted[i].Guests
		if trusted[i].failureUnder(overrides[name]) != "" {
			continue
		}
		h := now[name]
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
	if lostGuests(listed) {
		worse.guests = hadGuests
	}
	return worse
}

// failureUnder is the host's failure when its power is that of o, where o has one.
func (h *Host) failureUnder(o Override) string {
	set := Host{Power: h.Power, Trouble: h.Trouble}
	o.applyPower(&set)
	return set.Failure()
}

// lostGuests says that the hosts have no guest, but something is taken of them.
// Where guests have really gone, what they took is free.
func lostGuests(hosts []Host) bool {
	return !slices.ContainsFunc(hosts, func(h Host) bool { return h.Guests != 0 }) &&
		slices.ContainsFunc(hosts, func(h Host) bool { return !h.Used.IsZero() })
}

func (s setback) none() bool { return len(s.gone)+len(s.failed)+s.guests == 0 }

// same says that s and other are the same setback, for whatever reasons hosts failed.
func (s setback) same(other setback) bool {
	return s.guests == other.guests && slices.Equal(s.gone, other.gone) && slices.Equal(s.failed, other.failed)
}

// String is a sentence; empty for none.
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
	if s.guests > 0 {
		parts = append(parts, fmt.Sprintf("no host has a guest, where there were %d, but what they took is not free", s.guests))
	}
	return strings.Join(parts, "; ")
}

// some writes the first few of a list.
func some(words []string) string {
	const most = 3
	if more := len(words) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), more)
	}
	return strings.Join(words, ", ")
}

// trust is what is believed after the readings so far.
type trust struct {
	rules DoubtRules
	// believed is the last reading that was, nil before the first. Hosts that have
	// failed or gone by then are in it as they were when they were well, for the settle
	// time: many that are lost one by one are many.
	believed []sighting
	worse    setback      // of the reading after it
	since    span.Instant // since when it is that setback
	read     span.Instant // when the last reading was taken
	empty    bool         // it had no hosts
}

// after gives the trust after a reading that was taken at read and is judged now.
func (t trust) after(listed []Host, overrides map[string]Override, read, now span.Instant) trust {
	next := trust{rules: t.rules, believed: seen(listed), read: read}
	if t.believed == nil {
		return next
	}
	trusted := t.believed
	if t.worse.none() { // what is in doubt settles as a whole
		trusted = t.recent(now)
	}
	worse := t.rules.judge(trusted, listed, overrides)
	since := now
	if worse.same(t.worse) {
		since = t.since
	}
	switch {
	case worse.none():
		next.believed = remember(trusted, listed, overrides, now)
	case now < since.Add(t.rules.SettleTime):
		next.believed, next.worse, next.since = trusted, worse, since
	}
	return next
}

// recent gives believed without the hosts that were lost longer ago than the settle time.
func (t trust) recent(now span.Instant) []sighting {
	return slices.DeleteFunc(slices.Clone(t.believed), func(s sighting) bool {
		return s.lost != 0 && now >= s.lost.Add(t.rules.SettleTime)
	})
}

// remember gives listed, which is believed, with the hosts that were well in before and
// are not now.
func remember(before []sighting, listed []Host, overrides map[string]Override, now span.Instant) []sighting {
	well := make(map[string]sighting)
	for _, s := range before {
		if s.failureUnder(overrides[s.Name]) == "" {
			s.lost = cmp.Or(s.lost, now)
			well[s.Name] = s
		}
	}
	believed := seen(listed)
	for i := range believed {
		h := &believed[i]
		if was, known := well[h.Name]; known && h.failureUnder(overrides[h.Name]) != "" {
			h.Power, h.Trouble, h.lost = was.Power, was.Trouble, was.lost
		}
		delete(well, h.Name)
	}
	for _, gone := range well {
		gone.Guests = 0
		believed = append(believed, gone)
	}
	slices.SortFunc(believed, func(a, b sighting) int { return cmp.Compare(a.Name, b.Name) })
	return believed
}

// afterNothing gives the trust after a reading without hosts. What was settling
// begins anew.
func (t trust) afterNothing() trust {
	return trust{rules: t.rules, believed: t.believed, read: t.read, empty: true}
}

// doubt says why the hosts are not believed now; empty where they are.
func (t trust) doubt(now span.Instant) string {
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
