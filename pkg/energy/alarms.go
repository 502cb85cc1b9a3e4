// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Watched is the state of a host from which Alarms computes its alarms.
type Watched struct {
	Record     Record
	Machine    Machine
	Reading    Reading
	Agent      bool   // an agent can switch it
	Service    *bool  // its nova-compute is up; nil means unknown
	Twice      string // the names of two agents that both announce it
	Mismatches int    // measurements in a row in which the machine of an awake host was off
	How        Switching
}

// Watch is the input of Alarms.
type Watch struct {
	Hosts   []Watched
	Agents  []Agent
	Breaker *Stop
	// Halt is the reason why nothing is switched off; "" if hosts may be, or if no mode allows it
	// anyway.
	Halt string
}

// Alarms returns the alarms that apply at now, without Since: first those about a host, sorted by
// host and kind, then the others.
func Alarms(now span.Instant, w Watch, rules Rules) []Alarm {
	all := hostAlarms(now, w.Hosts, rules)
	for _, a := range w.Agents {
		if a.Lost {
			all = append(all, Alarm{Kind: AlarmAgentLost, Agent: a.Name, Text: fmt.Sprintf(
				"agent %s, which switches %d hosts, has sent nothing since %s; start it, or check the message broker", a.Name, a.Hosts, clock(a.Seen))})
		}
	}
	if w.Breaker != nil {
		all = append(all, Alarm{Kind: AlarmBreaker, Text: w.Breaker.Reason + "; nothing is switched off until you run almanac energy reset-breaker"})
	}
	if w.Halt != "" {
		all = append(all, Alarm{Kind: AlarmHalted, Text: "nothing is switched off now: " + w.Halt})
	}
	return all
}

// hostAlarms returns the alarms of the hosts, by host and kind.
func hostAlarms(now span.Instant, hosts []Watched, rules Rules) []Alarm {
	var all []Alarm
	for i := range hosts {
		w := &hosts[i]
		raise := func(kind AlarmKind, format string, args ...any) {
			all = append(all, Alarm{Kind: kind, Host: w.Record.Host, Text: fmt.Sprintf(format, args...)})
		}
		w.promise(now, rules, raise)
		w.problems(now, raise)
	}
	slices.SortStableFunc(all, func(a, b Alarm) int { return cmp.Or(cmp.Compare(a.Host, b.Host), cmp.Compare(a.Kind, b.Kind)) })
	return all
}

type raise func(kind AlarmKind, format string, args ...any)

// promise raises the alarms about reservations that may start late.
func (w *Watched) promise(now span.Instant, rules Rules, raise raise) {
	m, r := &w.Machine, &w.Record
	if m.Claimed == span.Forever || r.Phase == Awake {
		return
	}
	if r.Hold.Holds(now) && r.Hold.Action != HoldOn && r.Hold.Action != Test && rules.WakeAt(m) <= now {
		raise(AlarmHeldOff, "a reservation begins at %s, but the host is held off by hand (%s); release it", clock(m.Claimed), r.Hold.Reason)
		return
	}
	up := now.Add(m.BootSeconds)
	// BootSeconds is a percentile, so a few boots need a little longer than it.
	if r.Phase == Waking && r.Attempt == 0 && r.Begun != 0 && now < r.Begun.Add(m.BootSeconds+rules.BootMargin) {
		up = max(now, r.Begun.Add(m.BootSeconds))
	}
	if up > m.Claimed || r.Phase == Failed && rules.WakeAt(m) <= now {
		raise(AlarmReservedAsleep, "a reservation begins at %s, and the host, in phase %s, may not be up by then: %s",
			clock(m.Claimed), r.Phase.Word(), cmp.Or(m.Stuck, r.Reason))
	}
}

func clock(t span.Instant) string { return t.Time().UTC().Format(time.RFC3339) }

// problems raises the alarms about the host itself.
func (w *Watched) problems(now span.Instant, raise raise) {
	r := &w.Record
	if w.Twice != "" {
		raise(AlarmTwoAgents, "two agents announce its machine: %s; remove it from one of them", w.Twice)
	}
	if r.Phase != Awake && !w.Agent {
		raise(AlarmAgentLost, "no agent can switch it, and it is in phase %s; start the agent that has its machine", r.Phase.Word())
	}
	if r.Phase == Waking && r.Attempt > 0 {
		raise(AlarmWakeFailed, "it did not wake up %d times; Almanac tries again", r.Attempt)
	}
	if r.Phase == Waking && r.Begun == 0 {
		raise(AlarmFoundOn, "it was switched on, but not by Almanac")
	}
	if r.Quarantine != "" {
		raise(AlarmQuarantined, "%s; repair it, then release it or test it", r.Quarantine)
	}
	if limit := w.limit(); limit > 0 && now > r.Since.Add(limit) {
		raise(AlarmStuck, "it has been in phase %s for %v", r.Phase.Word(), time.Duration(now-r.Since)*time.Second)
	}
	if r.Phase == Awake && w.Reading.State == Off && w.Mismatches >= Glitch {
		if w.Service != nil && *w.Service {
			raise(AlarmContradiction, "its machine reports off, but its nova-compute is up: the BMC is wrong, or belongs to another machine")
		} else {
			raise(AlarmFoundOff, "it is off, but Almanac did not switch it off and leaves it alone")
		}
	}
}

// limit returns for how many seconds the host may be in its phase; 0 means no limit.
func (w *Watched) limit() int64 {
	switch how := w.How; w.Record.Phase {
	case Draining:
		return how.Settle + drainFor + 60
	case Stopping:
		return 2*how.OffPatience + 2*onFor
	case Waking:
		return int64(1+how.Retries)*how.BootTimeout + how.Backoff<<min(how.Retries, 10) + onFor
	}
	return 0
}
