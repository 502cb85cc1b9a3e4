package energy

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Record is what is remembered of a host that the controller has to do with. It is
// stored before anything is done that it speaks of.
type Record struct {
	Host  string
	Phase Phase
	Since span.Instant // of the phase
	// Reason is why the host has the phase, a sentence.
	Reason string
	// Target is the state that it is brought to, or has: Off or Standby while Leaving,
	// Stopping and Asleep, else On.
	Target State
	// Operation names what is being done, from Leaving until the host is Awake and its
	// service was seen open again; it stands in the reason for which that is disabled.
	Operation string
	// Urgent: the host is switched by a manual order, or because it is needed.
	Urgent bool
	// Testing: it is put to sleep to see whether it wakes.
	Testing bool
	// Found: it was switched on by somebody else.
	Found bool
	// Closed is since when its service was seen disabled by us; 0 while it was not.
	Closed span.Instant
	// Reported is what Nova said last of when its service had reported (updated_at).
	Reported span.Instant
	Begun    span.Instant // when it was first ordered on since it was asleep; 0 where it was not

	Order *Order // the last one given; nil once it is over
	// Taken says that the agent has said of the order that it has it.
	Taken   bool
	Number  int64 // of the last order
	Attempt int   // how often it has failed to wake since it was asleep
	// OffFailed is how often in a row it could not be switched off.
	OffFailed int
	RetryAt   span.Instant // when it is tried again; 0 where it need not be
	// Oddly counts the measurements in a row in which the machine was not as it should be.
	Oddly int
	// Heard counts how often Nova has said since it was switched off, or on, that its service
	// had reported since. Once may be one that was on its way, or somebody who has changed
	// the service; twice means that the host runs.
	Heard int
	// Down says that Nova has taken its service for down since it was switched off: once it
	// is up again it has reported.
	Down bool

	LastOn, LastOff span.Instant
	Boots           []int64        // seconds of its last boots, the latest last
	Switches        []span.Instant // of the last day
	Draw            Draw           // as its machine told it: idle, standby and off
	Hold            *Hold
	// Proof is its last wake test, or another time that it was switched off and woke.
	Proof *Proof
	// Quarantine says why the controller will not switch it off again until an operator
	// releases it, a sentence; empty where it may.
	Quarantine string
	// Mode is what an operator has set for this host; empty is that of its aggregates or
	// of all.
	Mode Mode
}

// same says that r and o are equal. It is asked of every host that sleeps at every step.
func (r *Record) same(o *Record) bool {
	return r.Host == o.Host && r.Phase == o.Phase && r.Since == o.Since && r.Reason == o.Reason && r.Target == o.Target &&
		r.Operation == o.Operation && r.Urgent == o.Urgent && r.Testing == o.Testing && r.Found == o.Found &&
		r.Closed == o.Closed && r.Reported == o.Reported && r.Begun == o.Begun &&
		equal(r.Order, o.Order) && r.Taken == o.Taken && r.Number == o.Number && r.Attempt == o.Attempt &&
		r.OffFailed == o.OffFailed && r.RetryAt == o.RetryAt && r.Oddly == o.Oddly && r.Heard == o.Heard && r.Down == o.Down &&
		r.LastOn == o.LastOn && r.LastOff == o.LastOff && slices.Equal(r.Boots, o.Boots) && slices.Equal(r.Switches, o.Switches) &&
		r.Draw == o.Draw && equal(r.Hold, o.Hold) && equal(r.Proof, o.Proof) && r.Quarantine == o.Quarantine && r.Mode == o.Mode
}

// equal says that two optional values are.
func equal[T comparable](a, b *T) bool {
	return a == b || a != nil && b != nil && *a == *b
}

// Proof is whether a host woke when it was last told to.
type Proof struct {
	At      span.Instant
	Woke    bool
	Seconds int64 // from the order until its service was up
	Reason  string
}

// Settings are what operators have set for the controller as a whole, beside the
// configuration.
type Settings struct {
	Mode       Mode            // empty: that of the configuration
	Aggregates map[string]Mode // by aggregate
	// Stopped says that nothing is switched off, and why (the kill switch).
	Stopped *Stop
	// Breaker is set by the controller after too many failed boots; nothing is switched
	// off until an operator arms it again. FailedBoots counts those in a row.
	Breaker     *Stop
	FailedBoots int
	// Plan is the last plan that was made, and Approved whether an operator said so.
	PlanID   string
	Plan     *Plan
	Approved *Approval
	Savings  Savings
}

// Stop says who stopped something, when and why.
type Stop struct {
	By, Reason string
	At         span.Instant
}

// Approval is an operator's word for a plan.
type Approval struct {
	Plan, By string
	At       span.Instant
	Begun    bool // it has been, or is being, carried out
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
	Kind  AlarmKind
	Host  string // empty: all
	Agent string // of a lost agent; else empty
	Text  string // a sentence that says what to do
	Since span.Instant
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
	Since, Until span.Instant // Until: up to when it is counted
	// HostSeconds and CoreSeconds are those of hosts that were off or in standby: the
	// latter is e_savings of paper 004. Boot time counts as on.
	HostSeconds, CoreSeconds int64
	// IdleCoreSeconds is res_idle: those of hosts that were on and unused.
	IdleCoreSeconds int64
	// Joules are those saved where the draw is known, boots subtracted; Unknown are the
	// host-seconds for which it is not.
	Joules  float64
	Unknown int64
	Boots   int64
	// Delay is delay_req: the sum of cores × boot time / duration over reservations that
	// were delayed by a boot.
	Delay float64
}

// Demand is how many hosts were in use at an instant.
type Demand struct {
	At              span.Instant
	InUse, Reserved int
}
