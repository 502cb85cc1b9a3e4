package energy

import "github.com/almanac-cloud/almanac/pkg/span"

// Record is what Almanac remembers of a host that the controller switches. It is stored
// before the controller acts on it.
type Record struct {
	Host  string       `json:"host"`
	Phase Phase        `json:"phase,omitempty"`
	Since span.Instant `json:"since"` // of the phase
	// Reason is why the host is in the phase, a sentence.
	Reason string `json:"reason,omitempty"`
	// Target is the state that it is brought to, or has: Off or Standby while Draining,
	// Stopping and Asleep, else On.
	Target State `json:"target,omitempty"`
	// Operation names what is being done, from Draining until the host is Awake and its
	// service was seen open again. It is part of the reason with which that is disabled.
	Operation string `json:"operation,omitempty"`
	// Urgent: the host is switched by a manual order, or because it is needed.
	Urgent bool `json:"urgent,omitempty"`
	// Testing: it is put to sleep to test whether it wakes.
	Testing bool `json:"testing,omitempty"`
	// Found: somebody else switched it on.
	Found bool `json:"found,omitempty"`
	// Closed is since when its service was seen disabled by us; 0 while it was not.
	Closed span.Instant `json:"closed,omitempty"`
	// Reported is when its service last reported, in Nova's words (updated_at).
	Reported span.Instant `json:"reported,omitempty"`
	// Begun is when it was first ordered on since it was asleep; 0 where it was not.
	Begun span.Instant `json:"begun,omitempty"`

	Order *Order `json:"order,omitempty"` // the last one sent; nil once it is over
	// Accepted reports that the agent has confirmed the order.
	Accepted bool  `json:"accepted,omitempty"`
	Number   int64 `json:"number,omitempty"`  // of the last order
	Attempt  int   `json:"attempt,omitempty"` // how often it has failed to wake since it was asleep
	// OffFailed is how often in a row it could not be switched off.
	OffFailed int          `json:"off_failed,omitempty"`
	RetryAt   span.Instant `json:"retry_at,omitempty"` // of the next attempt; 0 where there is none
	// Mismatches counts the measurements in a row in which the machine was not in the
	// state that the record expects.
	Mismatches int `json:"mismatches,omitempty"`
	// Heartbeats counts the reports of its service to Nova since it was switched off, or
	// on. One may have been on its way, or somebody may have changed the service; two mean
	// that the host runs.
	Heartbeats int `json:"heartbeats,omitempty"`
	// Down reports that Nova has seen its service down since it was switched off: once the
	// service is up again, it has reported.
	Down bool `json:"down,omitempty"`

	LastOn   span.Instant   `json:"last_on,omitempty"`
	LastOff  span.Instant   `json:"last_off,omitempty"`
	Boots    []int64        `json:"boots,omitempty"`    // seconds of its last boots, the latest last
	Switches []span.Instant `json:"switches,omitempty"` // of the last day
	Draw     Draw           `json:"draw,omitzero"`      // as measured: idle, standby and off
	Hold     *Hold          `json:"hold,omitempty"`
	// LastWakeTest is its last wake test, or another time that it was switched off and woke.
	LastWakeTest *WakeTest `json:"last_wake_test,omitempty"`
	// Quarantine is why the controller will not switch it off again until an operator
	// releases it, a sentence; empty where it may.
	Quarantine string `json:"quarantine,omitempty"`
	// Mode is what an operator has set for this host; empty is that of its aggregates or
	// of all.
	Mode Mode `json:"mode,omitempty"`
}

// WakeTest is whether a host woke when it was last ordered on.
type WakeTest struct {
	At      span.Instant `json:"at"`
	Woke    bool         `json:"woke"`
	Seconds int64        `json:"seconds,omitempty"` // from the order until its service was up
	Reason  string       `json:"reason,omitempty"`
}

// Settings are what operators have set for the controller as a whole, beside the
// configuration.
type Settings struct {
	Mode       Mode            `json:"mode,omitempty"`       // empty: that of the configuration
	Aggregates map[string]Mode `json:"aggregates,omitempty"` // by aggregate
	// Stopped is set while an operator has stopped the switching off (the kill switch).
	Stopped *Stop `json:"stopped,omitempty"`
	// Breaker is set by the controller after too many failed boots; nothing is switched
	// off until an operator arms it again. FailedBoots counts those in a row.
	Breaker     *Stop `json:"breaker,omitempty"`
	FailedBoots int   `json:"failed_boots,omitempty"`
	// Plan is the last plan that was made, and Approved whether an operator approved it.
	PlanID   string    `json:"plan_id,omitempty"`
	Plan     *Plan     `json:"plan,omitempty"`
	Approved *Approval `json:"approved,omitempty"`
	Savings  Savings   `json:"savings"`
}

// Stop is who stopped something, when and why.
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
	Begun bool         `json:"begun,omitempty"` // it has been, or is being, carried out
}

// Entry is one line of the audit: who did what to a host, why, and what came of it. It
// is never changed.
type Entry struct {
	ID   int64 // grows; 0 before it is stored
	At   span.Instant
	Host string // empty: all
	Kind EntryKind
	By   string // "almanac", or the user's id
	// Operation joins the entries of one going to sleep and waking up.
	Operation string
	Text      string // a sentence
}

// EntryKind is what an entry of the audit tells.
type EntryKind string

// The kinds of entries.
const (
	EntryPhase   EntryKind = "phase"   // the host is in another phase
	EntryOrder   EntryKind = "order"   // an order was given
	EntryOutcome EntryKind = "outcome" // what came of it
	EntryAborted EntryKind = "aborted" // the host stays on
	EntryFound   EntryKind = "found"   // the machine was not as it should be
	EntryAlarm   EntryKind = "alarm"   // an alarm began or ended
	EntryManual  EntryKind = "manual"  // an operator ordered something
	EntrySetting EntryKind = "setting" // an operator changed a mode, stopped or approved
)

// Alarm is something that an operator has to see to.
type Alarm struct {
	Kind  AlarmKind    `json:"kind"`
	Host  string       `json:"host,omitempty"`  // empty: all
	Agent string       `json:"agent,omitempty"` // of a lost agent; else empty
	Text  string       `json:"text"`            // a sentence that names the remedy
	Since span.Instant `json:"since"`
}

// AlarmKind is one kind of alarm.
type AlarmKind string

// The kinds of alarms.
const (
	AlarmReservedAsleep AlarmKind = "reserved_asleep" // a reservation may start late
	AlarmWakeFailed     AlarmKind = "wake_failed"
	AlarmQuarantined    AlarmKind = "quarantined"
	AlarmStuck          AlarmKind = "stuck"         // in a phase for too long
	AlarmFoundOn        AlarmKind = "found_on"      // switched on by somebody else
	AlarmFoundOff       AlarmKind = "found_off"     // off, and not by us
	AlarmContradiction  AlarmKind = "contradiction" // the machine and Nova say opposite things
	AlarmAgentLost      AlarmKind = "agent_lost"    // nobody can switch hosts that sleep
	AlarmTwoAgents      AlarmKind = "two_agents"    // two agents say that they switch a host
	AlarmBreaker        AlarmKind = "breaker"       // too many boots failed in a row
	AlarmHeldOff        AlarmKind = "held_off"      // held off by hand, and reserved
	AlarmHalted         AlarmKind = "halted"        // the hosts are in doubt
)

// Savings are what switching off has saved, and what it cost, since Since. The baseline is
// that every host that was switched off had been idle meanwhile.
type Savings struct {
	Since span.Instant `json:"since"`
	Until span.Instant `json:"until"` // up to when they are counted
	// HostSeconds and CoreSeconds are those of hosts that were off or in standby: the
	// latter is e_savings of paper 004. Boot time counts as on.
	HostSeconds int64 `json:"host_seconds"`
	CoreSeconds int64 `json:"core_seconds"`
	// IdleCoreSeconds is res_idle: those of hosts that were on and unused.
	IdleCoreSeconds int64 `json:"idle_core_seconds"`
	// Joules are those saved where the draw is known, boots subtracted; Unknown are the
	// host-seconds for which it is not.
	Joules  float64 `json:"joules"`
	Unknown int64   `json:"unknown"`
	Boots   int64   `json:"boots"`
	// Delay is delay_req: the sum of cores × boot time / duration over reservations that
	// were delayed by a boot.
	Delay float64 `json:"delay"`
}

// Demand is how many hosts were in use at an instant.
type Demand struct {
	At              span.Instant
	InUse, Reserved int
}
