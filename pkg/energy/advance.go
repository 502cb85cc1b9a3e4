package energy

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Switching says how hosts are switched. Times are seconds.
type Switching struct {
	Settle      int64 // for how long a host is closed before it is looked at and switched off
	OffPatience int64 // for how long its operating system may take to stop
	Hard        bool  // the power may be cut after that
	BootTimeout int64 // within which it must be up
	Retries     int   // how often a boot that failed is tried again
	Backoff     int64 // before the first of these; it doubles
	Probe       int64 // after which a Failed host is tried again
}

// Glitch is for how many looks in a row a machine must be as it should not be, so that it
// is believed.
const Glitch = 2

// Facts are what is known of a host when its record is advanced.
type Facts struct {
	Now     span.Instant
	Machine Reading // the zero Reading where it was not asked
	// Agent says that an agent can switch the host now.
	Agent bool
	// Service is its nova-compute; nil where Nova did not say, and where there is no cloud
	// (Cloudless): there a machine that is on is up.
	Service   *ServiceFact
	Cloudless bool
	// BootSeconds is what a boot takes of a Cloudless host, where nothing tells that it is over.
	BootSeconds int64
	// Outcome is what became of the record's order; nil where nobody said.
	Outcome *Outcome
	// Want is what should become of the host; nil leaves it as it is.
	Want *Switch
	// Halt says why it must not be switched off now, or go on being, a sentence.
	Halt string
	// Looked says that both sources were asked whether it is empty; Occupied is what they
	// said, and Doubt why they could not.
	Looked          bool
	Occupied, Doubt string
	// ID is a new one, for an operation or an order.
	ID    string
	Epoch int64
}

// ServiceFact is the nova-compute of a host as far as it matters here.
type ServiceFact struct {
	Up, Disabled bool
	Ours         bool // it was disabled by us
	Reported     span.Instant
}

// Action is something that the controller does once a record is stored.
type Action string

// The actions.
const (
	Close  Action = "close"  // disable the host's service, with the record's operation
	Open   Action = "open"   // enable it, if it was disabled by us for that operation
	Reopen Action = "reopen" // enable it, if it was disabled by us for any
	Send   Action = "send"   // the record's order
)

// Step is what follows from the facts for a record.
type Step struct {
	Record  Record
	Entries []Entry
	Actions []Action
	// Woke and Failed say that a boot has just succeeded or failed for good.
	Woke, Failed bool
}

// Nothing reports whether nothing follows from the facts, before being the record until then.
func (s *Step) Nothing(before *Record) bool {
	return len(s.Actions)+len(s.Entries) == 0 && reflect.DeepEqual(&s.Record, before)
}

// MustLook says that before the next step both sources have to be asked whether the host
// is empty.
func (r *Record) MustLook(f Facts, how Switching) bool {
	return r.Phase == Draining && f.Halt == "" && f.closed() && r.Closed != 0 && f.Now >= r.Closed.Add(how.Settle)
}

// closed says that no new instance can come to the host, because of us.
func (f *Facts) closed() bool {
	return f.Cloudless || f.Service != nil && f.Service.Disabled && f.Service.Ours
}

// Advance returns the next record of a host, from the facts. The caller stores the record
// before it carries out the actions; actions that were not carried out are in the next step
// again.
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

// stepping is a step in the making.
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

// Almanac is who the controller is in the audit.
const Almanac = "almanac"

// become gives the host another phase.
func (s *stepping) become(p Phase, reason string) {
	r := &s.Record
	r.Phase, r.Since, r.Reason, r.Mismatches, r.Heartbeats = p, s.f.Now, reason, 0, 0
	s.tell(EntryPhase, "%s: %s", p.word(), reason)
}

func (p Phase) word() string { return cmp.Or(string(p), "awake") }

func (s *stepping) do(a Action) { s.Actions = append(s.Actions, a) }

// wantsDown gives where the host should be switched off to.
func (s *stepping) wantsDown() (State, bool) {
	w := s.f.Want
	if w == nil || w.To == On || s.f.Halt != "" {
		return "", false
	}
	return w.To, true
}

func (s *stepping) wantsUp() bool { return s.f.Want != nil && s.f.Want.To == On }

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

// held says that one of these manual orders is in force.
func (s *stepping) held(actions ...ManualAction) bool {
	h := s.Record.Hold
	return h.Holds(s.f.Now) && slices.Contains(actions, h.Action)
}

// abort leaves a host on that was about to be switched off.
func (s *stepping) abort(reason string) {
	r := &s.Record
	s.tell(EntryAborted, "it stays on: %s", reason)
	r.Target, r.Order, r.Closed, r.Urgent, r.RetryAt = On, nil, 0, false, 0
	s.endTest()
	s.become(Awake, reason)
	s.do(Open)
}

// endTest ends the wake test, if it is one; what was ordered by hand meanwhile stays.
func (s *stepping) endTest() {
	r := &s.Record
	if r.Testing && r.Hold != nil && r.Hold.Action == Test {
		r.Hold = nil
	}
	r.Testing = false
}

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
		s.abort("somebody else has disabled its service meanwhile")
	case f.Now > r.Since.Add(s.how.Settle+drainFor):
		s.abort("it could not be found out for long whether it is empty")
	case !f.closed():
		r.Closed = 0
		s.do(Close)
	case r.Closed == 0:
		r.Closed = f.Now
	case !f.Looked || f.Doubt != "": // too early, or asked again
	case f.Occupied != "":
		s.abort(f.Occupied)
	default:
		s.order(r.Target, "it is empty")
		s.become(Stopping, r.Reason)
	}
}

// drainFor is for how many seconds beyond the settling time a host may stay Draining.
const drainFor = 300

// order gives the host's machine a new order.
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
		// What somebody else has switched on, as for a rescue, keeps its power.
		Hard: s.how.Hard && (to != On || r.Attempt > 0 && !r.Found), Patience: s.how.OffPatience, Deadline: f.Now.Add(within),
	}
	s.tell(EntryOrder, "ordered %s (order %s): %s", to, r.Order.ID, why)
	s.do(Send)
}

// How many seconds an order may wait for its agent. One to switch off stands on a look at the
// host that was just made.
const (
	onFor  = 60
	offFor = 15
)

// progress is how far the order is.
func (s *stepping) progress() Progress {
	if s.f.Outcome == nil {
		return ""
	}
	return s.f.Outcome.Progress
}

// lost says that the order will not begin any more, and nobody says whether it has.
func (s *stepping) lost() bool {
	return s.progress() == "" && s.f.Now > s.Record.Order.Deadline
}

// reason is what the agent says of an order that failed.
func (s *stepping) reason() string {
	if s.f.Outcome == nil {
		return "its agent did not answer the order"
	}
	return cmp.Or(s.f.Outcome.Reason, "the order failed")
}

func (s *stepping) stopping() {
	r, f := &s.Record, &s.f
	if r.Order == nil { // what was stored is not whole
		s.lookAgain("it was not ordered")
		return
	}
	s.hear()
	p := s.progress()
	r.Accepted = r.Accepted || p == OrderAccepted || p == OrderDone || p == OrderFailed
	off := f.Machine.State == Off || f.Machine.State == Standby
	over := p == OrderDone || p == OrderFailed || p == OrderRefused || s.lost()
	// One that was told to stop may yet do so after its agent has given up.
	late := f.Now > r.Order.Deadline.Add(2*r.Order.Patience+offFor)
	switch {
	case off && over:
		r.Target = f.Machine.State
		s.fellAsleep()
	case p == OrderRefused && !r.Accepted:
		s.lookAgain(s.reason())
	case p == OrderDone && f.Machine.State == On:
		if r.Mismatches++; r.Mismatches > Glitch {
			s.offFailed("its machine says that it is on, after it said that it was switched off")
		}
	case over && late && f.Machine.State == On:
		s.offFailed(s.reason())
	case over && late && f.Machine.State == "" && f.Service != nil && f.Service.Up && r.Heartbeats > Glitch:
		s.offFailed("it runs, and its machine cannot be read: " + s.reason())
	case over && late && f.Machine.State == "" && f.Service != nil && !f.Service.Up:
		s.fellAsleep() // for all that is known
	}
}

// lookAgain takes an order back that was not taken. The host is closed as before.
func (s *stepping) lookAgain(reason string) {
	r := &s.Record
	s.tell(EntryOutcome, "the order was not taken: %s", reason)
	r.Order = nil
	s.become(Draining, r.Reason)
}

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

// switched counts a switch among those of the last day.
func (r *Record) switched(now span.Instant) {
	recent := r.Switches[len(r.Switches)-r.SwitchedToday(now):]
	r.Switches = append(slices.Clone(recent), now)
}

// SwitchedToday is how often the host was switched within a day before now.
func (r *Record) SwitchedToday(now span.Instant) int {
	i, _ := slices.BinarySearch(r.Switches, now.Add(-24*3600)+1)
	return len(r.Switches) - i
}

// mostOffFailed is after how many failures in a row to switch it off a host is left alone.
const mostOffFailed = 3

// offFailed takes a host back that could not be switched off. It counts as switched on
// now, so that it is left alone for a while.
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

func (s *stepping) asleep() {
	r, f := &s.Record, &s.f
	s.hear()
	runs := f.Service != nil && f.Service.Up && (r.Heartbeats >= Glitch || r.Down)
	switch {
	case f.Machine.State == On:
		if r.Mismatches++; r.Mismatches >= Glitch {
			s.tell(EntryFound, "its machine is on, and was not switched on by Almanac")
			s.found("somebody else has switched it on")
		}
	case runs && (f.Machine.Problem != "" || !f.Agent):
		s.tell(EntryFound, "its nova-compute reports, and its machine cannot be read")
		s.found("somebody else has switched it on")
	case runs && f.Machine.State != "":
		s.tell(EntryFound, "its nova-compute reports, though its machine says that it is %s", f.Machine.State)
		s.quarantine("its machine says that it is off while it runs")
		s.found("it runs, whatever its machine says")
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

// wake orders the machine on.
func (s *stepping) wake(reason string) {
	r := &s.Record
	r.Target, r.Urgent = On, s.f.Want != nil && s.f.Want.Urgent
	s.order(On, reason)
	if r.Phase != Waking {
		s.become(Waking, reason)
	}
}

// hear notes what Nova says of the service. Nova takes it for up for a while after it has
// stopped, so that being up is no sign of life; and what Nova says of when it has reported
// changes with everything that is changed of it (nova/servicegroup/drivers/db.py).
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

// found takes a host that runs, though we have not switched it on, for one that does.
func (s *stepping) found(reason string) {
	r := &s.Record
	r.Target, r.Order, r.Begun, r.Found = On, nil, 0, true
	s.endTest()
	r.switched(s.f.Now)
	s.become(Waking, reason)
}

// up says that the host runs: its service has reported since it was switched off, whatever
// its machine says.
func (s *stepping) up() bool {
	f, r := &s.f, &s.Record
	if f.Cloudless {
		return f.Machine.State == On && f.Now >= s.Record.Begun.Add(f.BootSeconds)
	}
	return f.Service != nil && f.Service.Up && (r.Down || r.Heartbeats >= Glitch)
}

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
		s.order(On, "another controller had ordered it, of which its agent takes nothing any more")
	case s.progress() == OrderFailed || s.progress() == OrderRefused:
		s.wakeFailed(s.reason())
	case s.lost():
		// Not the host's fault: it is ordered again for as long as it takes.
		if f.Agent {
			s.order(On, "its agent did not answer the order before")
		}
	case f.Service == nil && !f.Cloudless: // who knows whether it is up?
	case s.progress() != "" && f.Now > r.Order.Deadline.Add(s.how.BootTimeout-onFor):
		s.wakeFailed(fmt.Sprintf("it was not up after %v", time.Duration(s.how.BootTimeout)*time.Second))
	}
}

// foundWaking waits for a host that somebody else has switched on; one that goes off again
// is asleep.
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

// mostBoots bounds how many boots are remembered.
const mostBoots = 50

func (s *stepping) wokeUp() {
	r, f := &s.Record, &s.f
	reason := r.Reason
	if r.Begun != 0 {
		took := int64(f.Now - r.Begun)
		if r.Attempt == 0 && took <= s.how.BootTimeout { // else it is not the boot that took so long
			r.Boots = append(r.Boots[max(0, len(r.Boots)-mostBoots+1):len(r.Boots):len(r.Boots)], took)
		}
		r.LastWakeTest = &WakeTest{At: f.Now, Woke: true, Seconds: took}
		r.switched(f.Now)
		s.Woke = true
		s.tell(EntryOutcome, "it woke up within %v", time.Duration(took)*time.Second)
	}
	if r.Testing {
		r.Quarantine = "" // it has been shown that it wakes
	}
	s.endTest()
	r.LastOn, r.Order, r.Attempt, r.Closed, r.Begun, r.Urgent, r.RetryAt, r.Found = f.Now, nil, 0, 0, 0, false, 0, false
	s.become(Awake, reason)
	r.Operation = ""
}

func (s *stepping) wakeFailed(reason string) {
	r, f := &s.Record, &s.f
	r.Attempt++
	r.Order = nil
	s.tell(EntryOutcome, "attempt %d to wake it failed: %s", r.Attempt, reason)
	if r.Attempt <= s.how.Retries {
		r.RetryAt = f.Now.Add(s.how.Backoff << min(r.Attempt-1, 10))
		return
	}
	s.Failed = r.LastWakeTest == nil || r.LastWakeTest.Woke // one that fails at each trial is one host
	r.LastWakeTest = &WakeTest{At: f.Now, Reason: reason}
	r.RetryAt = f.Now.Add(s.how.Probe)
	s.endTest()
	s.quarantine("it did not wake up: " + reason)
	s.become(Failed, "it did not wake up: "+reason)
}

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
		r.RetryAt = f.Now.Add(s.how.Probe) // nobody is surprised by it, hands inside
	case r.Quarantine == "": // it was released
		r.Attempt, r.Begun = 0, f.Now
		s.wake("released by hand")
	case f.Now >= r.RetryAt:
		r.Attempt, r.Begun = s.how.Retries, f.Now // one attempt
		s.wake("it is tried again after a while")
	}
}
