// Package reservation has the vocabulary of promises: what is asked for, what is
// promised, and why not.
package reservation

import (
	"slices"
	"strings"
	"unicode"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Kind says what a reservation counts.
type Kind string

// The kinds.
const (
	Hosts     Kind = "host"     // whole hosts
	Instances Kind = "instance" // virtual machines of one shape
)

// Kinds are all kinds.
var Kinds = []Kind{Hosts, Instances}

// Status is where a reservation stands; lifecycle has the table of changes.
type Status string

// The states.
const (
	Pending   Status = "pending"   // booked, its start lies ahead
	Starting  Status = "starting"  // the start is being carried out
	Active    Status = "active"    // the owner may use the hosts
	Ending    Status = "ending"    // the end is being carried out
	Ended     Status = "ended"     // over
	Cancelled Status = "cancelled" // given up by its owner
	Failed    Status = "failed"    // could not be kept
)

// Statuses are all states.
var Statuses = []Status{Pending, Starting, Active, Ending, Ended, Cancelled, Failed}

// Live says that the reservation holds claims.
func (s Status) Live() bool {
	return s == Pending || s == Starting || s == Active || s == Ending
}

// OnEnd says what happens to the owner's instances at the end.
type OnEnd string

// What may happen at the end.
const (
	Delete OnEnd = "delete"
	Stop   OnEnd = "stop"
	Shelve OnEnd = "shelve"
	Leave  OnEnd = "leave"
)

// OnEnds are all choices for the end.
var OnEnds = []OnEnd{Delete, Stop, Shelve, Leave}

// Terms are what an owner asks for, beside the time.
type Terms struct {
	Name     string
	Kind     Kind
	Quantity int
	// HostProperties is the filter that hosts must pass, as JSON; empty is every host.
	HostProperties string
	Policy         calendar.Policy
	// Resources and Affinity are for kind instance: the shape of one of them, and
	// how they lie on hosts.
	Resources resource.Vector
	Affinity  calendar.Affinity
	Image     string
	OnEnd     OnEnd
	// BeforeEnd is how many seconds before the end the owner is warned; 0 is never.
	BeforeEnd int64
}

// Repaired returns terms that an earlier version stored as today's version reads them from a
// request: without resource classes of amount 0, and without a filter that is an empty list,
// which stood for every host.
func (t Terms) Repaired() Terms {
	t.Resources = t.Resources.WithoutZeros()
	if emptyList(t.HostProperties) {
		t.HostProperties = ""
	}
	return t
}

// emptyList reports whether a filter is [], or a string that holds it.
func emptyList(filter string) bool {
	const longest = 32 // with blanks; a longer text is not worth a look
	blank := func(r rune) bool { return r == '"' || unicode.IsSpace(r) }
	return len(filter) <= longest && strings.Join(strings.FieldsFunc(filter, blank), "") == "[]"
}

// Request asks for Terms during Duration seconds somewhere in [Start, End). What
// is zero was not given: without Start the reservation may begin now, without End
// it takes Duration from Start, without Duration the whole window.
type Request struct {
	Terms
	Start, End span.Instant
	Duration   int64
	// ShortWarning bounds BeforeEnd by half of the reservation: nobody asked for so long a
	// warning.
	ShortWarning bool
}

// Reservation is a promise to a project: its span is fixed and it holds claims.
type Reservation struct {
	ID        string
	ProjectID string
	UserID    string
	Terms
	Status Status
	Span   span.Span
	Claims []Claim
	Events []Event
	// DelayedByBoot says that an immediate reservation begins late because hosts
	// must boot first.
	DelayedByBoot bool
	// Degraded says why the promise is not wholly kept; empty where it is.
	Degraded         string
	Created, Updated span.Instant
	// Version grows by one with every stored change.
	Version int64
}

// Claim is one host, or Slices shapes on it, for one span.
type Claim struct {
	Host string
	Span span.Span
	// Slices is the number of instances that the claim has room for; 0 where the
	// claim holds the host as a whole.
	Slices int
}

// HostNames gives the hosts of the claims, each once, in the order of the claims.
func (r *Reservation) HostNames() []string {
	names := make([]string, 0, len(r.Claims))
	seen := make(map[string]bool, len(r.Claims))
	for _, c := range r.Claims {
		if !seen[c.Host] {
			seen[c.Host] = true
			names = append(names, c.Host)
		}
	}
	return names
}

// EventType names what happens to a reservation.
type EventType string

// The events. Start, BeforeEnd and End are due at a time; the others are entered
// as they happen.
const (
	CreatedEvent   EventType = "created"
	ChangedEvent   EventType = "changed"
	StartEvent     EventType = "start"
	BeforeEndEvent EventType = "before_end"
	EndEvent       EventType = "end"
	CancelledEvent EventType = "cancelled"
	HealedEvent    EventType = "healed"   // it was given other hosts for some that have failed
	DegradedEvent  EventType = "degraded" // hosts have failed that nothing can replace
	RestoredEvent  EventType = "restored" // these hosts are back
	FailedEvent    EventType = "failed"   // a start or an end was given up
	ImageEvent     EventType = "image"    // its image will be late, could not be put on its hosts, or is fine again
)

// EventState says whether an event has happened.
type EventState string

// The states of an event.
const (
	Due     EventState = "pending"
	Running EventState = "running" // it takes work on the cloud, which has begun
	Done    EventState = "done"
)

// Event is an entry in a reservation's log.
type Event struct {
	Type   EventType
	Time   span.Instant // when it is due
	State  EventState
	Done   span.Instant // when it happened
	Detail string       // what happened, in a sentence; may be empty
	Holder string       // the replica that carries a running event out
	// Until is when an event that has failed is tried again; 0 of one that never has.
	Until span.Instant
}

// LastRemark is the last sentence about its image in its log; empty where there is none.
func (r *Reservation) LastRemark() string {
	for _, e := range slices.Backward(r.Events) {
		if e.Type == ImageEvent {
			return e.Detail
		}
	}
	return ""
}
