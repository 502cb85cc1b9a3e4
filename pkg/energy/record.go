// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Record is the stored state of a host that the controller switches. The controller stores
// it before it acts on it.
type Record struct {
	Host  string       `json:"host"`
	Phase Phase        `json:"phase,omitempty"`
	Since span.Instant `json:"since"` // when the phase began
	// Reason explains the phase in a sentence.
	Reason string `json:"reason,omitempty"`
	// Target is the power state that the host has or to which it is being brought: Off or Standby
	// in the phases Draining, Stopping and Asleep, otherwise On.
	Target State `json:"target,omitempty"`
	// Operation is the id of the operation in progress, from Draining until the host is Awake and
	// its service is enabled again. It is part of the reason with which the service is disabled.
	Operation string `json:"operation,omitempty"`
	// Urgent is true if a manual order or a need for the host is the cause of the switch.
	Urgent bool `json:"urgent,omitempty"`
	// Testing is true if the host goes to sleep for a wake test.
	Testing bool `json:"testing,omitempty"`
	// Found is true if the controller did not switch the host on, but found it running.
	Found bool `json:"found,omitempty"`
	// Closed is the instant since which Almanac has disabled the service; 0 while it is enabled.
	Closed span.Instant `json:"closed,omitempty"`
	// Reported is when the service last reported to Nova (updated_at).
	Reported span.Instant `json:"reported,omitempty"`
	// Begun is when the host was first ordered on since it was asleep; 0 if it was not ordered.
	Begun span.Instant `json:"begun,omitempty"`

	Order *Order `json:"order,omitempty"` // the last order sent; nil once it is over
	// Accepted is true if the agent has confirmed the order.
	Accepted bool  `json:"accepted,omitempty"`
	Number   int64 `json:"number,omitempty"`  // number of the last order
	Attempt  int   `json:"attempt,omitempty"` // failed attempts to wake it since it was asleep
	// OffFailed is the number of consecutive failures to switch the host off.
	OffFailed int          `json:"off_failed,omitempty"`
	RetryAt   span.Instant `json:"retry_at,omitempty"` // when the next attempt is due; 0 if none is
	// Mismatches is the number of consecutive measurements in which the state of the machine
	// differed from the state that the record expects.
	Mismatches int `json:"mismatches,omitempty"`
	// Heartbeats is the number of reports of the service to Nova since the last switch. One report
	// does not prove that the host runs: it may have been sent before, or a change to the service
	// may have caused it. Two reports do.
	Heartbeats int `json:"heartbeats,omitempty"`
	// Down is true if Nova has shown the service as down since the host was switched off. If the
	// service is up after that, it has reported again.
	Down bool `json:"down,omitempty"`

	LastOn   span.Instant   `json:"last_on,omitempty"`
	LastOff  span.Instant   `json:"last_off,omitempty"`
	Boots    []int64        `json:"boots,omitempty"`    // durations of the last boots in seconds, the latest last
	Switches []span.Instant `json:"switches,omitempty"` // when it was switched, within the last day
	Draw     Draw           `json:"draw,omitzero"`      // measured: idle, standby and off
	Hold     *Hold          `json:"hold,omitempty"`
	// LastWakeTest is the result of the last attempt to wake the host, as a test or not.
	LastWakeTest *WakeTest `json:"last_wake_test,omitempty"`
	// Quarantine is the reason, as a sentence, why the controller does not switch the host off
	// again until an operator releases it; "" if it may.
	Quarantine string `json:"quarantine,omitempty"`
	// Mode is the mode that an operator has set for this host; empty means the mode of its
	// aggregates or of all hosts.
	Mode Mode `json:"mode,omitempty"`
}

// WakeTest is the result of an attempt to wake a host.
type WakeTest struct {
	At      span.Instant `json:"at"`
	Woke    bool         `json:"woke"`
	Seconds int64        `json:"seconds,omitempty"` // from the order until its service was up
	Reason  string       `json:"reason,omitempty"`
}

// Settings are what operators have set for all hosts, in addition to the configuration.
type Settings struct {
	Mode       Mode            `json:"mode,omitempty"`       // empty: the mode of the configuration
	Aggregates map[string]Mode `json:"aggregates,omitempty"` // by name of the aggregate
	// Stopped is set while an operator has stopped the switching off of all hosts (the kill
	// switch).
	Stopped *Stop `json:"stopped,omitempty"`
	// Breaker is set by the controller after too many failed boots: no host is switched off until
	// an operator resets it. FailedBoots is the number of consecutive failed boots.
	Breaker     *Stop `json:"breaker,omitempty"`
	FailedBoots int   `json:"failed_boots,omitempty"`
	// Plan is the latest plan, and Approved its approval by an operator, if any.
	PlanID   string    `json:"plan_id,omitempty"`
	Plan     *Plan     `json:"plan,omitempty"`
	Approved *Approval `json:"approved,omitempty"`
	Savings  Savings   `json:"savings"`
	// Version increases by one with every change by an operator, also of the modes of single hosts.
	Version int64 `json:"version,omitempty"`
}

// VersionText returns the version as a text, which a client names for a change that is for this version alone.
func (s *Settings) VersionText() string { return strconv.FormatInt(s.Version, 10) }

// Stop records who stopped the switching off of hosts, when and why.
type Stop struct {
	By     string       `json:"by"`
	Reason string       `json:"reason,omitempty"`
	At     span.Instant `json:"at"`
}

// Approval is an operator's approval of a plan.
type Approval struct {
	Plan  string       `json:"plan"`
	By    string       `json:"by"`
	At    span.Instant `json:"at"`
	Begun bool         `json:"begun,omitempty"` // the plan has been or is being carried out
}

// Entry is one line of the audit: an action on a host, who ordered it, its reason and its result.
// Entries never change.
type Entry struct {
	ID   int64 // increases; 0 before it is stored
	At   span.Instant
	Host string // empty: all hosts
	Kind EntryKind
	By   string // "almanac" or the id of a user
	// Operation is the same in all entries from the beginning of going to sleep to the end of
	// waking up.
	Operation string
	Text      string // a sentence
}

// EntryKind is the kind of an entry of the audit.
type EntryKind string

// The kinds of entries.
const (
	EntryPhase   EntryKind = "phase"   // the phase of the host changed
	EntryOrder   EntryKind = "order"   // an order was sent
	EntryOutcome EntryKind = "outcome" // the result of an order
	EntryAborted EntryKind = "aborted" // the host was not switched off after all
	EntryFound   EntryKind = "found"   // the machine was in an unexpected state
	EntryAlarm   EntryKind = "alarm"   // an alarm began or ended
	EntryManual  EntryKind = "manual"  // a manual order by an operator
	EntrySetting EntryKind = "setting" // an operator changed a mode, stopped or approved something
)

// Alarm is a condition that needs an operator.
type Alarm struct {
	Kind  AlarmKind    `json:"kind"`
	Host  string       `json:"host,omitempty"`  // empty: all hosts
	Agent string       `json:"agent,omitempty"` // name of the lost agent; else empty
	Text  string       `json:"text"`            // a sentence that names the remedy
	Since span.Instant `json:"since"`
}

// AlarmKind is the kind of an alarm.
type AlarmKind string

// The kinds of alarms.
const (
	AlarmReservedAsleep AlarmKind = "reserved_asleep" // a reservation may start late
	AlarmWakeFailed     AlarmKind = "wake_failed"
	AlarmQuarantined    AlarmKind = "quarantined"
	AlarmStuck          AlarmKind = "stuck"         // in a phase for too long
	AlarmFoundOn        AlarmKind = "found_on"      // on, but not switched on by Almanac
	AlarmFoundOff       AlarmKind = "found_off"     // off, but not switched off by Almanac
	AlarmContradiction  AlarmKind = "contradiction" // the machine and Nova report opposite states
	AlarmAgentLost      AlarmKind = "agent_lost"    // no agent can switch hosts that sleep
	AlarmTwoAgents      AlarmKind = "two_agents"    // two agents announce the same host
	AlarmBreaker        AlarmKind = "breaker"       // too many boots failed in a row
	AlarmHeldOff        AlarmKind = "held_off"      // reserved, but an operator holds it off
	AlarmHalted         AlarmKind = "halted"        // nothing is switched off
)

// AlarmKinds are all kinds of alarms.
var AlarmKinds = []AlarmKind{
	AlarmReservedAsleep, AlarmWakeFailed, AlarmQuarantined, AlarmStuck, AlarmFoundOn, AlarmFoundOff, AlarmContradiction, AlarmAgentLost, AlarmTwoAgents,
	AlarmBreaker, AlarmHeldOff, AlarmHalted,
}

// Savings are the savings and the costs of switching off since the instant Since, compared with
// hosts that stay on idle instead of being off.
type Savings struct {
	Since span.Instant `json:"since"`
	Until span.Instant `json:"until"` // the end of the time counted so far
	// HostSeconds and CoreSeconds are the time for which hosts were off or in standby, times hosts
	// and times cores. CoreSeconds is e_savings of paper 004. The time of boots counts as on.
	HostSeconds int64 `json:"host_seconds"`
	CoreSeconds int64 `json:"core_seconds"`
	// IdleCoreSeconds is res_idle of paper 004: the core-seconds of hosts that were on and not in
	// use.
	IdleCoreSeconds int64 `json:"idle_core_seconds"`
	// Joules is the energy saved by hosts whose power is known, minus the energy of their boots.
	// Unknown is the number of host-seconds of hosts whose power is unknown.
	Joules  float64 `json:"joules"`
	Unknown int64   `json:"unknown"`
	Boots   int64   `json:"boots"`
	// Delay is delay_req of paper 004: the sum of cores × boot time / duration over the
	// reservations that a boot delayed.
	Delay float64 `json:"delay"`
}

// Demand is the number of hosts in use and the number of hosts reserved at an instant.
type Demand struct {
	At              span.Instant
	InUse, Reserved int
}
