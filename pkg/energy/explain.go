// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"fmt"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Explain returns sentences that state why a host is on or off, and what would change that. kept is
// the reason in the last plan why the host stays on; "" if there is none.
func Explain(now span.Instant, m *Machine, r *Record, kept string, rules Rules) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if r.Phase == Awake && r.Since == 0 {
		say("It is awake, and was never switched off.")
	} else {
		say("It has been in phase %s since %s: %s.", r.Phase.Word(), clock(r.Since), r.Reason)
	}
	if r.Hold.Holds(now) {
		until := "until it is released"
		if r.Hold.Until != 0 {
			until = "until " + clock(r.Hold.Until)
		}
		say("An operator holds it %s %s%s.", r.Hold.Action, until, r.Hold.because())
	}
	switch {
	case m.Claimed <= now:
		say("It is reserved now, and stays on.")
	case m.Claimed != span.Forever:
		say("It is reserved from %s, and will be awake from %s.", clock(m.Claimed), clock(rules.WakeAt(m)))
	}
	switch {
	case m.Busy:
		say("It is in use.")
	case r.Phase == Awake && m.Stays != "":
		say("It stays on: %s.", m.Stays)
	case r.Phase == Awake && kept != "":
		say("It stays on: %s.", kept)
	case r.Phase == Awake && m.Idle > 0:
		say("It has been idle for %s in a row; a plan may switch it off after %d.", fault.Counted(m.Idle, "measurement"), rules.IdleNeeded)
	}
	if m.Stuck != "" && r.Phase != Failed {
		say("It cannot be switched on now: %s.", m.Stuck)
	}
	if r.Quarantine != "" {
		say("It is in quarantine: %s.", r.Quarantine)
	}
	switch {
	case r.LastWakeTest == nil:
		say("It has not passed a wake test yet.")
	case r.LastWakeTest.Woke:
		say("At %s it woke up within %v.", clock(r.LastWakeTest.At), time.Duration(r.LastWakeTest.Seconds)*time.Second)
	default:
		say("At %s it did not wake up: %s.", clock(r.LastWakeTest.At), r.LastWakeTest.Reason)
	}
	return out
}
