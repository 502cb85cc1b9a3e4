// SPDX-License-Identifier: Apache-2.0

// Package reservation defines the types that all reservation packages share: requests,
// reservations, refusals, and the stored changes.
package reservation

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Kind is what a reservation counts.
type Kind string

// The kinds of reservations.
const (
	Hosts     Kind = "host"     // whole hosts
	Instances Kind = "instance" // room for virtual machines of one size
	Addresses Kind = "address"  // floating IPs; only leases have them
)

// Kinds lists all kinds, and HostKinds those that claim hosts.
var (
	Kinds     = []Kind{Hosts, Instances, Addresses}
	HostKinds = []Kind{Hosts, Instances}
)

// Status is the state of a reservation. Package lifecycle has the table of transitions.
type Status string

// The statuses.
const (
	Waiting  Status = "waiting"  // asked for; it holds nothing until there is room
	Pending  Status = "pending"  // booked; the start lies ahead
	Starting Status = "starting" // Almanac prepares the start
	Active   Status = "active"   // the owner may use the hosts
	Ending   Status = "ending"   // Almanac carries out the end
	Ended    Status = "ended"    // over
	Canceled Status = "canceled" // the owner canceled it
	Failed   Status = "failed"   // the promise could not be kept
)

// Statuses lists all statuses.
var Statuses = []Status{Waiting, Pending, Starting, Active, Ending, Ended, Canceled, Failed}

// LiveStatuses are those in which a reservation is not over: it waits, or it holds claims.
var LiveStatuses = []Status{Waiting, Pending, Starting, Active, Ending}

// Live reports whether a reservation in this status is not over.
func (s Status) Live() bool { return slices.Contains(LiveStatuses, s) }

// Promised reports whether a reservation in this status holds claims.
func (s Status) Promised() bool { return s.Live() && s != Waiting }

// OnEnd is what happens to the owner's instances at the end.
type OnEnd string

// The choices for the end.
const (
	OnEndDelete OnEnd = "delete"
	OnEndStop   OnEnd = "stop"
	OnEndShelve OnEnd = "shelve"
	OnEndLeave  OnEnd = "leave"
)

// OnEnds lists all choices for the end.
var OnEnds = []OnEnd{OnEndDelete, OnEndStop, OnEndShelve, OnEndLeave}

// Terms are what an owner requests, except the time.
type Terms struct {
	Name     string
	Kind     Kind
	Quantity int
	// HostProperties is the filter that hosts must pass, as JSON; empty matches every host.
	HostProperties string
	Policy         calendar.Policy
	// Resources and Affinity apply to kind instance: the size of one instance, and
	// whether the instances share a host.
	Resources resource.Vector
	Affinity  calendar.Affinity
	Image     string
	OnEnd     OnEnd
	// BeforeEnd is how many seconds before the end the owner is warned; 0 means never.
	BeforeEnd int64
	// Notice is how many seconds before its start the start is fixed. Until then Almanac may move the
	// reservation within its Window so that others have room. 0 means that the start is fixed at once.
	Notice int64
	// Maintenance is true if operators work on the hosts: they are those that the request named, no
	// other host replaces them, and nobody else uses them. Name is the reason. It applies to kind host.
	Maintenance bool
	Together    Together
}

// Together is how the hosts of a reservation lie to each other, by the value that a property has on each of them: in which
// rack or zone they are, for example. The zero Together asks for nothing.
type Together struct {
	// By is the name of the property.
	By   string       `json:"by"`
	Rule TogetherRule `json:"rule"`
	// Values is on how many values at least the hosts of rule spread are; 0 for the other rules.
	Values int `json:"values,omitempty"`
	// Preferred is true if the reservation has other hosts rather than none. Otherwise no decision breaks the rule.
	Preferred bool `json:"preferred,omitempty"`
	// ApartFrom are the ids of reservations, with spaces between them: as long as these are not over, no host has a value of the
	// property that one of theirs has.
	ApartFrom string `json:"apart_from,omitempty"`
	// Broken is true if the hosts do not lie as the rule asks. Almanac decides it with the hosts.
	Broken bool `json:"broken,omitempty"`
}

// String returns the rule in words; "" if there is none.
func (t Together) String() string {
	if t == (Together{}) {
		return ""
	}
	text := strings.TrimPrefix(string(t.Rule)+" "+t.By, " ")
	if t.Values != 0 {
		text = fmt.Sprintf("%s, at least %d values", text, t.Values)
	}
	if t.Preferred {
		text += ", preferred"
	}
	if t.ApartFrom != "" {
		text += ", apart from " + strings.Join(t.Apart(), ", ")
	}
	if t.Broken {
		text += ", not kept"
	}
	return text
}

// Apart returns the ids of the reservations from which the hosts lie apart.
func (t Together) Apart() []string { return strings.Fields(t.ApartFrom) }

// Required reports whether no decision breaks the rule, or one of both: a rule may be preferred, and to lie apart is required.
func (t Together) Required() bool { return t.Rule != "" && !t.Preferred || t.ApartFrom != "" }

// TogetherRule is a rule about the values of a property on the hosts of a reservation.
type TogetherRule string

// The rules. TogetherFewest has no required form: it decides between hosts that are free at the same start.
const (
	TogetherSame   TogetherRule = "same"   // one value
	TogetherFewest TogetherRule = "fewest" // as few values as possible
	TogetherSpread TogetherRule = "spread" // at least Together.Values values
)

// TogetherRules lists all rules.
var TogetherRules = []TogetherRule{TogetherSame, TogetherFewest, TogetherSpread}

// Repaired returns terms that an earlier version stored in the form in which this version
// reads a request: without resource classes of amount 0, and without a filter that is an
// empty list, which matched every host.
func (t Terms) Repaired() Terms {
	t.Resources = t.Resources.WithoutZeros()
	if emptyList(t.HostProperties) {
		t.HostProperties = ""
	}
	return t
}

// emptyList reports whether a filter is [] or a string that contains only [].
func emptyList(filter string) bool {
	const longest = 32 // including white space; longer texts are not examined
	blank := func(r rune) bool { return r == '"' || unicode.IsSpace(r) }
	return len(filter) <= longest && strings.Join(strings.FieldsFunc(filter, blank), "") == "[]"
}

// Request asks for Terms for Duration seconds within [Start, End). Zero means not specified:
// without Start the reservation may start now, without End it ends Duration after Start,
// without Duration it lasts for the whole window.
type Request struct {
	Terms
	// Hosts are the names of the hosts of maintenance; all other requests name none.
	Hosts      []string
	Start, End span.Instant
	Duration   int64
	// Hold is for how many seconds the reservation is held before its owner must confirm it; 0 means that it is booked at once.
	Hold int64
	// WaitUntil is until when the request waits if there is no room for it now; 0 means that it is refused instead.
	WaitUntil span.Instant
	// ShortWarning limits BeforeEnd to half of the duration. It is true if BeforeEnd is the default
	// and was not requested.
	ShortWarning bool
}

// Reservation is a promise to a project. Its span is fixed, and while it is live it holds claims.
type Reservation struct {
	ID        string
	ProjectID string
	UserID    string
	Terms
	// Membership has no LeaseID for a reservation that belongs to no lease.
	Membership Membership
	Occurrence Occurrence
	Status     Status
	// Span is the time of the reservation; while it waits, the first that it asked for.
	Span span.Span
	// Window is the time within which a reservation with a Notice may be moved, or a waiting one may be booked; else empty.
	Window span.Span
	// Hold is for how many seconds a waiting reservation is held, for its owner to confirm it, once there is room.
	Hold   int64
	Claims []Claim
	// Released is how many host-seconds it held in claims that changes have released since; an instance
	// counts as a host. Past has the claims.
	Released int64
	// PromisedEnd is the latest end that it had before its owner shortened it; 0 if that is its end. An
	// extension is as early as one from there.
	PromisedEnd span.Instant
	// Addresses are the floating IPs of a reservation of kind address, which has no claims of hosts.
	// They stay when the reservation is over.
	Addresses []address.Claim
	Events    []Event
	// DelayedByBoot is true if a reservation without a requested time starts late because hosts
	// must boot first.
	DelayedByBoot bool
	// Degraded is the reason why the promise is kept only in part; empty if it is kept in full.
	Degraded         string
	Created, Updated span.Instant
	// Version increases by one with every stored change; see VersionText.
	Version int64
}

// VersionText returns the version as a text, which a client names for a change that is for this version alone.
func (r *Reservation) VersionText() string { return strconv.FormatInt(r.Version, 10) }

// Claim is one host, or Slices slices of it, held for one span.
type Claim struct {
	Host string
	Span span.Span
	// Slices is the number of instances for which the claim has room; 0 means that the claim holds
	// the whole host.
	Slices int
}

// Over reports whether the reservation's claim c has ended. A claim that lasts until the end of its
// reservation is not over while the reservation is live.
func (r *Reservation) Over(c Claim, now span.Instant) bool {
	return c.Span.End <= now && c.Span.End < r.Span.End
}

// HostNames returns the hosts of the claims, each once, in the order of the claims.
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

// EventType is what happens to a reservation.
type EventType string

// The events. ExpireEvent, StartEvent, BeforeEndEvent and EndEvent are due at a time; the others are
// entered as they happen.
const (
	CreatedEvent   EventType = "created"
	ChangedEvent   EventType = "changed"
	BookedEvent    EventType = "booked" // there was room for what had waited
	ExpireEvent    EventType = "expire" // its hold or its wait ends, and with it the reservation, unless its owner has confirmed it or there was room
	StartEvent     EventType = "start"
	BeforeEndEvent EventType = "before_end"
	EndEvent       EventType = "end"
	CanceledEvent  EventType = "canceled"
	HealedEvent    EventType = "healed"   // other hosts replaced some of its hosts
	DegradedEvent  EventType = "degraded" // hosts failed, and no free host can replace them
	RestoredEvent  EventType = "restored" // these hosts are back
	FailedEvent    EventType = "failed"   // Almanac stopped retrying a start or an end
	MovedEvent     EventType = "moved"    // other times within its window, so that others have room
	ImageEvent     EventType = "image"    // the image will be late, could not be put on hosts, or is there after all
)

// EventState is the progress of an event.
type EventState string

// The states of an event.
const (
	EventDue     EventState = "pending"
	EventRunning EventState = "running" // a replica works on it in the cloud
	EventDone    EventState = "done"
)

// Event is an entry in the log of a reservation.
type Event struct {
	Type   EventType
	Time   span.Instant // when it is due
	State  EventState
	Done   span.Instant // when it happened
	Detail string       // what happened, in a sentence; may be empty
	Holder string       // the replica that works on a running event
	// Until is when a failed event is retried; 0 means that it has not failed.
	Until span.Instant
}

// LastEvent returns the last event of a type in the log; ok is false if there is none.
func (r *Reservation) LastEvent(t EventType) (e Event, ok bool) {
	for _, e := range slices.Backward(r.Events) {
		if e.Type == t {
			return e, true
		}
	}
	return Event{}, false
}

// HeldUntil returns when the hold of a reservation ends that its owner has not confirmed; 0 if it is not held. Its log is all that
// is stored of a hold.
func (r *Reservation) HeldUntil() span.Instant {
	if r.Status == Waiting {
		return 0
	}
	return r.expires()
}

// WaitsUntil returns until when a reservation waits for room; 0 if it does not wait.
func (r *Reservation) WaitsUntil() span.Instant {
	if r.Status != Waiting {
		return 0
	}
	return r.expires()
}

func (r *Reservation) expires() span.Instant {
	for _, e := range r.Events {
		if e.Type == ExpireEvent && e.State == EventDue {
			return e.Time
		}
	}
	return 0
}

// PolicyReason returns why first fit has chosen the start although its owner asked for another policy; empty otherwise.
func (r *Reservation) PolicyReason() string {
	e, _ := r.LastEvent(CreatedEvent)
	if booked, waited := r.LastEvent(BookedEvent); waited {
		e = booked
	}
	return e.Detail
}

// LastRemark returns the newest sentence about the image in the log; empty if there is none.
func (r *Reservation) LastRemark() string {
	e, _ := r.LastEvent(ImageEvent)
	return e.Detail
}
