// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Switching sets how hosts are switched. Times are in seconds.
type Switching struct {
	Settle      int64 // time from closing a host to the check whether it is empty
	OffPatience int64 // time that its operating system may need to stop
	Hard        bool  // the power may be cut after OffPatience
	BootTimeout int64 // time within which it must be up
	Retries     int   // further attempts after a failed boot
	Backoff     int64 // time before the first further attempt; it doubles each time
	Probe       int64 // time after which a Failed host is tried again
}

// Glitch is the number of consecutive observations that confirm an unexpected power state of a
// machine.
const Glitch = 2

// Facts are the observations of a host from which Advance computes its next record.
type Facts struct {
	Now     span.Instant
	Machine Reading // the zero Reading if it was not read
	// Agent is true if an agent can switch the host now.
	Agent bool
	// Service is the nova-compute of the host. It is nil if Nova did not answer, or if there is no
	// cloud (Cloudless). In a Cloudless inventory a host whose machine is on counts as up.
	Service   *ServiceFact
	Cloudless bool
	// BootSeconds is the boot time of a Cloudless host, for which nothing reports the end of a
	// boot.
	BootSeconds int64
	// Outcome is the result of the record's order; nil if the agent did not answer.
	Outcome *Outcome
	// Want is the switch that the plan or an operator wants; nil means that the host stays as it
	// is.
	Want *Switch
	// Halt is the reason, as a sentence, why the host must not be switched off now; "" if it may
	// be.
	Halt string
	// Looked is true if Nova and Placement were asked whether the host is empty. Occupied is what
	// is on it, "" if nothing; Unknown is why that could not be determined.
	Looked            bool
	Occupied, Unknown string
	// ID is a new id for an operation or an order.
	ID    string
	Epoch int64
}

// ServiceFact is the state of the nova-compute of a host.
type ServiceFact struct {
	Up, Disabled bool
	Ours         bool // Almanac has disabled it
	Reported     span.Instant
}

// Action is something that the controller does after it has stored a record.
type Action string

// The actions.
const (
	Close  Action = "close"  // disable the host's service, with the record's operation as reason
	Open   Action = "open"   // enable it, if Almanac disabled it for that operation
	Reopen Action = "reopen" // enable it, if Almanac disabled it for any operation
	Send   Action = "send"   // send the record's order
)

// Step is the result of Advance: the next record, the audit entries and the actions.
type Step struct {
	Record  Record
	Entries []Entry
	Actions []Action
	// Woke is true if a boot has just succeeded, Failed if a boot has just failed for the last
	// time.
	Woke, Failed bool
}

// Nothing reports whether the step changes nothing; before is the record before the step.
func (s *Step) Nothing(before *Record) bool {
	return len(s.Actions)+len(s.Entries) == 0 && reflect.DeepEqual(&s.Record, before)
}

// Rests reports, at little cost, that Advance changes nothing: the host is awake or asleep, all that was read agrees with
// that, and no switch is wanted. Neither does Advance later, until the record or one of these facts is another one. False
// means that Advance may change something.
func (r *Record) Rests(f *Facts) bool {
	if f.Want != nil {
		return false
	}
	switch s := f.Service; r.Phase {
	case Awake:
		return r.Operation == "" && (s == nil || !s.Disabled || !s.Ours)
	case Asleep:
		return r.Order == nil && !r.Testing && r.Mismatches == 0 && f.Machine.State != On &&
			(s == nil || !s.Up && r.Down && s.Reported == r.Reported)
	}
	return false
}

// MustLook reports whether the next step requires that Nova and Placement are asked before whether
// the host is empty.
func (r *Record) MustLook(f Facts, how Switching) bool {
	return r.Phase == Draining && f.Halt == "" && f.closed() && r.Closed != 0 && f.Now >= r.Closed.Add(how.Settle)
}

// closed reports whether Almanac keeps new instances off the host.
func (f *Facts) closed() bool {
	return f.Cloudless || f.Service != nil && f.Service.Disabled && f.Service.Ours
}

// Advance returns the next record of a host, from the facts. The caller stores the record
// before it carries out the actions. The next step repeats actions that were not carried
// out.
func Advance(r Record, f Facts, how Switching) Step {
	s := stepping{Step: Step{Record: r}, f: f, how: how}
	switch r.Phase {
	case Awake:
		s.awake()
	case Draining:
		s.draining()
	case Stopping:
		s.stopping()
	case Asleep:
		s.asleep()
	case Waking:
		s.waking()
	case Failed:
		s.failed()
	}
	return s.Step
}

// stepping is a step of Advance in progress.
type stepping struct {
	Step
	f   Facts
	how Switching
}

func (s *stepping) tell(kind EntryKind, format string, args ...any) {
	s.Entries = append(s.Entries, Entry{
		At: s.f.Now, Host: s.Record.Host, Kind: kind, By: Almanac, Operation: s.Record.Operation, Text: fmt.Sprintf(format, args...),
	})
}

// Almanac is the name of the controller in the audit.
const Almanac = "almanac"

// become moves the host to another phase.
func (s *stepping) become(p Phase, reason string) {
	r := &s.Record
	r.Phase, r.Since, r.Reason, r.Mismatches, r.Heartbeats = p, s.f.Now, reason, 0, 0
	s.tell(EntryPhase, "%s: %s", p.Word(), reason)
}

func (s *stepping) do(a Action) { s.Actions = append(s.Actions, a) }

// wantsDown returns the state in which the host should be switched off; false if it should stay on.
func (s *stepping) wantsDown() (State, bool) {
	w := s.f.Want
	if w == nil || w.To == On || s.f.Halt != "" {
		return "", false
	}
	return w.To, true
}

func (s *stepping) wantsUp() bool { return s.f.Want != nil && s.f.Want.To == On }

// awake is the step of a host that is on: it begins to drain if it is wanted off, and is opened again if
// Almanac has closed it for an action that was not carried out.
func (s *stepping) awake() {
	r, service := &s.Record, s.f.Service
	if service != nil && service.Disabled && service.Ours { // an action was not carried out
		s.do(Reopen)
		return
	}
	if service != nil || s.f.Cloudless {
		r.Operation = ""
	}
	to, down := s.wantsDown()
	if !down || r.Operation != "" {
		return
	}
	r.Operation, r.Target, r.Urgent, r.Closed = s.f.ID, to, s.f.Want.Urgent, 0
	r.Testing = s.held(Test)
	s.become(Draining, s.f.Want.Reason)
	s.do(Close)
}

// held reports whether one of these manual orders applies now.
func (s *stepping) held(actions ...ManualAction) bool {
	h := s.Record.Hold
	return h.Holds(s.f.Now) && slices.Contains(actions, h.Action)
}

// abort keeps a host on that was going to be switched off.
func (s *stepping) abort(reason string) {
	r := &s.Record
	s.tell(EntryAborted, "it stays on: %s", reason)
	r.Target, r.Order, r.Closed, r.Urgent, r.RetryAt = On, nil, 0, false, 0
	s.endTest()
	s.become(Awake, reason)
	s.do(Open)
}

// endTest ends a wake test, if there is one. A manual order that has replaced the test remains.
func (s *stepping) endTest() {
	r := &s.Record
	if r.Testing && r.Hold != nil && r.Hold.Action == Test {
		r.Hold = nil
	}
	r.Testing = false
}

// draining is the step of a host that is closed and not yet empty: it is ordered off when it is empty;
// the action ends if the host is wanted up, halted, occupied, or not examined in time.
func (s *stepping) draining() {
	r, f := &s.Record, &s.f
	switch {
	case f.Halt != "":
		s.abort(f.Halt)
	case s.wantsUp():
		s.abort(f.Want.Reason)
	case f.Cloudless && r.Closed == 0:
		r.Closed = f.Now
	case f.Service != nil && f.Service.Disabled && !f.Service.Ours:
		s.abort("someone else has disabled its compute service")
	case f.Now > r.Since.Add(s.how.Settle+drainFor):
		s.abort("Almanac could not find out in time whether it is empty")
	case !f.closed():
		r.Closed = 0
		s.do(Close)
	case r.Closed == 0:
		r.Closed = f.Now
	case !f.Looked || f.Unknown != "": // too early, or the answer is unknown: the next step asks again
	case f.Occupied != "":
		s.abort(f.Occupied)
	default:
		s.order(r.Target, "it is empty")
		s.become(Stopping, r.Reason)
	}
}

// drainFor is the number of seconds beyond the settling time that a host may stay Draining.
const drainFor = 300

// order adds a new order for the host's machine.
func (s *stepping) order(to State, why string) {
	r, f := &s.Record, &s.f
	within := int64(onFor)
	if to != On {
		within = offFor
	}
	r.Number++
	r.RetryAt, r.Accepted = 0, false
	r.Order = &Order{
		ID: f.ID, Epoch: f.Epoch, Number: r.Number, Host: r.Host, State: to,
		// A host that Almanac did not switch on, for example for a rescue, keeps its power.
		Hard: s.how.Hard && (to != On || r.Attempt > 0 && !r.Found), Patience: s.how.OffPatience, Deadline: f.Now.Add(within),
	}
	s.tell(EntryOrder, "ordered %s (order %s): %s", to, r.Order.ID, why)
	s.do(Send)
}

// These are the seconds that an order may wait for its agent. An order to switch off is
// valid for a short time only, because it relies on a check that the host is empty.
const (
	onFor  = 60
	offFor = 15
)

// progress returns the progress of the order; "" if the agent has not answered.
func (s *stepping) progress() Progress {
	if s.f.Outcome == nil {
		return ""
	}
	return s.f.Outcome.Progress
}

// lost reports whether the deadline of the order has passed and the agent has not reported that it
// began.
func (s *stepping) lost() bool {
	return s.progress() == "" && s.f.Now > s.Record.Order.Deadline
}

// reason returns why the order failed, as the agent reports it.
func (s *stepping) reason() string {
	if s.f.Outcome == nil {
		return "its agent did not answer the order"
	}
	return cmp.Or(s.f.Outcome.Reason, "the order failed")
}

// stopping is the step of a host that was ordered off: it waits for its machine to report off, and ends
// as asleep, or as a failure to switch off.
func (s *stepping) stopping() {
	r, f := &s.Record, &s.f
	if r.Order == nil { // the stored record is incomplete
		s.lookAgain("it was not ordered")
		return
	}
	s.hear()
	p := s.progress()
	r.Accepted = r.Accepted || p == OrderAccepted || p == OrderDone || p == OrderFailed
	off := f.Machine.State == Off || f.Machine.State == Standby
	over := p == OrderDone || p == OrderFailed || p == OrderRefused || s.lost()
	// A machine that was ordered to stop may still stop after its agent has given up.
	late := f.Now > r.Order.Deadline.Add(2*r.Order.Patience+offFor)
	switch {
	case off && over:
		r.Target = f.Machine.State
		s.fellAsleep()
	case p == OrderRefused && !r.Accepted:
		s.lookAgain(s.reason())
	case p == OrderDone && f.Machine.State == On:
		if r.Mismatches++; r.Mismatches > Glitch {
			s.offFailed("its machine reports on after it reported that it was switched off")
		}
	case over && late && f.Machine.State == On:
		s.offFailed(s.reason())
	case over && late && f.Machine.State == "" && f.Service != nil && f.Service.Up && r.Heartbeats > Glitch:
		s.offFailed("it runs, and its machine cannot be read: " + s.reason())
	case over && late && f.Machine.State == "" && f.Service != nil && !f.Service.Up:
		s.fellAsleep() // nothing shows that it still runs
	}
}

// lookAgain withdraws an order that the agent did not accept. The host stays closed.
func (s *stepping) lookAgain(reason string) {
	r := &s.Record
	s.tell(EntryOutcome, "the agent did not accept the order: %s", reason)
	r.Order = nil
	s.become(Draining, r.Reason)
}

// fellAsleep records that the host is off, and when.
func (s *stepping) fellAsleep() {
	r, f := &s.Record, &s.f
	r.Order, r.OffFailed, r.Attempt, r.Begun, r.Found = nil, 0, 0, 0, false
	r.LastOff = f.Now
	r.switched(f.Now)
	s.become(Asleep, r.Reason)
	if r.Down, r.Reported = false, 0; f.Service != nil {
		r.Reported = f.Service.Reported
	}
}

// switched adds a switch to the switches of the last day.
func (r *Record) switched(now span.Instant) {
	recent := r.Switches[len(r.Switches)-r.SwitchedToday(now):]
	r.Switches = append(slices.Clone(recent), now)
}

// SwitchedToday returns the number of switches of the host within the day before now.
func (r *Record) SwitchedToday(now span.Instant) int {
	i, _ := slices.BinarySearch(r.Switches, now.Add(-24*3600)+1)
	return len(r.Switches) - i
}

// mostOffFailed is the number of consecutive failures to switch a host off after which it is in
// quarantine.
const mostOffFailed = 3

// offFailed keeps a host in service that could not be switched off. The host counts as switched on
// now, so that MinOn protects it for a while from another attempt.
func (s *stepping) offFailed(reason string) {
	r := &s.Record
	r.OffFailed++
	r.LastOn = s.f.Now
	s.tell(EntryOutcome, "switching it off failed: %s", reason)
	if r.OffFailed >= mostOffFailed {
		s.quarantine(fmt.Sprintf("it could not be switched off %d times in a row: %s", r.OffFailed, reason))
	}
	s.abort("switching it off failed: " + reason)
}

func (s *stepping) quarantine(reason string) {
	s.Record.Quarantine = reason
	s.tell(EntryOutcome, "it will not be switched off again until it is released: %s", reason)
}

// asleep is the step of a host that is off: it is woken if it is wanted or a wake test goes on, and is
// entered as found if somebody else has switched it on.
func (s *stepping) asleep() {
	r, f := &s.Record, &s.f
	s.hear()
	runs := f.Service != nil && f.Service.Up && (r.Heartbeats >= Glitch || r.Down)
	switch {
	case f.Machine.State == On:
		if r.Mismatches++; r.Mismatches >= Glitch {
			s.tell(EntryFound, "its machine is on, but Almanac did not switch it on")
			s.found("somebody else has switched it on")
		}
	case runs && (f.Machine.Problem != "" || !f.Agent):
		s.tell(EntryFound, "its nova-compute is up, and its machine cannot be read")
		s.found("somebody else has switched it on")
	case runs && f.Machine.State != "":
		s.tell(EntryFound, "its nova-compute is up although its machine reports %s", f.Machine.State)
		s.quarantine("its machine reports off while it runs")
		s.found("it runs, whatever its machine reports")
	case s.wantsUp():
		r.Testing = r.Testing || s.held(Test)
		r.Attempt, r.Begun = 0, f.Now
		s.wake(f.Want.Reason)
	case r.Testing && s.held(HoldOff, HoldStandby):
		r.Testing = false
	case r.Testing:
		r.Attempt, r.Begun = 0, f.Now
		s.wake("the wake test")
	case f.Machine.State != "":
		r.Mismatches = 0
	}
}

// wake orders the machine to be switched on.
func (s *stepping) wake(reason string) {
	r := &s.Record
	r.Target, r.Urgent = On, s.f.Want != nil && s.f.Want.Urgent
	s.order(On, reason)
	if r.Phase != Waking {
		s.become(Waking, reason)
	}
}

// hear stores what Nova shows of the service. Nova shows a service as up for a while after it has
// stopped, so "up" alone does not prove that the host runs. Any change to the service also changes
// the time of its last report (nova/servicegroup/drivers/db.py).
func (s *stepping) hear() {
	r, told := &s.Record, s.f.Service
	switch {
	case told == nil:
		return
	case !told.Up:
		r.Down = true
	case told.Reported != r.Reported && r.Reported != 0:
		r.Heartbeats++
	}
	r.Reported = told.Reported
}

// found handles a host that runs although Almanac has not switched it on. The host counts as
// waking.
func (s *stepping) found(reason string) {
	r := &s.Record
	r.Target, r.Order, r.Begun, r.Found = On, nil, 0, true
	s.endTest()
	r.switched(s.f.Now)
	s.become(Waking, reason)
}

// up reports whether the host runs: its service has reported since the host was switched off,
// whatever the power state of its machine.
func (s *stepping) up() bool {
	f, r := &s.f, &s.Record
	if f.Cloudless {
		return f.Machine.State == On && f.Now >= s.Record.Begun.Add(f.BootSeconds)
	}
	return f.Service != nil && f.Service.Up && (r.Down || r.Heartbeats >= Glitch)
}

// waking is the step of a host that was ordered on: it ends when the host is up, repeats an order that
// its agent lost, and ends an attempt that takes too long.
func (s *stepping) waking() {
	r, f := &s.Record, &s.f
	s.hear()
	switch {
	case s.up() && f.Service != nil && f.Service.Disabled && f.Service.Ours:
		s.do(Open)
	case s.up():
		s.wokeUp()
	case r.RetryAt != 0 && s.held(HoldOff, HoldStandby):
		r.RetryAt = 0
		s.become(Failed, "it has failed to wake up, and an operator holds it off")
	case r.RetryAt != 0 && f.Now < r.RetryAt:
	case r.RetryAt != 0:
		s.wake(fmt.Sprintf("attempt %d", r.Attempt+1))
	case r.Order == nil:
		s.foundWaking()
	case s.progress() == OrderRefused && r.Order.Epoch < f.Epoch:
		s.order(On, "its agent refuses the order, which is an earlier controller's")
	case s.progress() == OrderFailed || s.progress() == OrderRefused:
		s.wakeFailed(s.reason())
	case s.lost():
		// The agent is at fault, not the host: the order is repeated until an agent
		// answers.
		if f.Agent {
			s.order(On, "its agent did not answer the previous order")
		}
	case f.Service == nil && !f.Cloudless: // without Nova's answer nothing shows whether it is up
	case s.progress() != "" && f.Now > r.Order.Deadline.Add(s.how.BootTimeout-onFor):
		s.wakeFailed(fmt.Sprintf("it was not up after %v", time.Duration(s.how.BootTimeout)*time.Second))
	}
}

// foundWaking waits for a host that Almanac did not switch on. If the host goes off again,
// it is asleep.
func (s *stepping) foundWaking() {
	r, f := &s.Record, &s.f
	known := f.Cloudless || f.Service != nil
	switch {
	case (f.Machine.State == Off || f.Machine.State == Standby) && (f.Cloudless || f.Service != nil && !f.Service.Up):
		if r.Mismatches++; r.Mismatches >= Glitch {
			r.Target = f.Machine.State
			s.become(Asleep, "it was switched off again, by somebody else")
		}
	case known && f.Now > r.Since.Add(s.how.BootTimeout):
		r.Begun = f.Now
		s.wake("its machine is on, but its service has not started")
	default:
		r.Mismatches = 0
	}
}

// mostBoots is the largest number of boot times that a record stores.
const mostBoots = 50

// wokeUp records that the host is up, how long the boot took, and the result of a wake test.
func (s *stepping) wokeUp() {
	r, f := &s.Record, &s.f
	reason := r.Reason
	if r.Begun != 0 {
		took := int64(f.Now - r.Begun)
		if r.Attempt == 0 && took <= s.how.BootTimeout { // a longer time is not that of the boot alone
			r.Boots = append(r.Boots[max(0, len(r.Boots)-mostBoots+1):len(r.Boots):len(r.Boots)], took)
		}
		r.LastWakeTest = &WakeTest{At: f.Now, Woke: true, Seconds: took}
		r.switched(f.Now)
		s.Woke = true
		s.tell(EntryOutcome, "it woke up within %v", time.Duration(took)*time.Second)
	}
	if r.Testing {
		r.Quarantine = "" // the test has shown that it wakes
	}
	s.endTest()
	r.LastOn, r.Order, r.Attempt, r.Closed, r.Begun, r.Urgent, r.RetryAt, r.Found = f.Now, nil, 0, 0, 0, false, 0, false
	s.become(Awake, reason)
	r.Operation = ""
}

// wakeFailed ends an attempt to wake the host. The next one begins after a pause that doubles each time;
// after the last the host is failed and quarantined.
func (s *stepping) wakeFailed(reason string) {
	r, f := &s.Record, &s.f
	r.Attempt++
	r.Order = nil
	s.tell(EntryOutcome, "attempt %d to wake it failed: %s", r.Attempt, reason)
	if r.Attempt <= s.how.Retries {
		r.RetryAt = f.Now.Add(s.how.Backoff << min(r.Attempt-1, 10))
		return
	}
	s.Failed = r.LastWakeTest == nil || r.LastWakeTest.Woke // a host that fails at each attempt counts once
	r.LastWakeTest = &WakeTest{At: f.Now, Reason: reason}
	r.RetryAt = f.Now.Add(s.how.Probe)
	s.endTest()
	s.quarantine("it did not wake up: " + reason)
	s.become(Failed, "it did not wake up: "+reason)
}

// failed is the step of a host that did not wake up: Almanac tries again from time to time, and at once
// if an operator orders or releases the host.
func (s *stepping) failed() {
	r, f := &s.Record, &s.f
	s.hear()
	retold := r.Hold.Holds(f.Now) && r.Hold.At > r.Since && (r.Hold.Action == HoldOn || r.Hold.Action == Test)
	switch {
	case s.up():
		s.found("it has come up by itself")
	case retold:
		r.Attempt, r.Begun, r.Testing = 0, f.Now, s.held(Test)
		s.wake("ordered by hand")
	case s.held(HoldOff, HoldStandby):
		r.RetryAt = f.Now.Add(s.how.Probe) // an operator may be at work on it: it is not woken
	case r.Quarantine == "": // an operator has released it
		r.Attempt, r.Begun = 0, f.Now
		s.wake("released by hand")
	case f.Now >= r.RetryAt:
		r.Attempt, r.Begun = s.how.Retries, f.Now // so that there is only one attempt
		s.wake("the periodic attempt to wake it")
	}
}
