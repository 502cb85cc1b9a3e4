// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Calendar is one page of the answer to GET /v1/calendar; Next is the marker of the next page.
// UnknownProperties are those of the filter that no host has.
type Calendar struct {
	Start             time.Time      `json:"start"`
	End               time.Time      `json:"end"`
	Hosts             []HostCalendar `json:"hosts"`
	Next              Marker         `json:"next"`
	UnknownProperties []string       `json:"unknown_properties,omitempty"`
	// KeptFrom is set if Start lies before it: of the time before it, claims have been purged.
	KeptFrom *time.Time `json:"kept_from,omitempty"`
}

// HostCalendar contains the claims on one host, sorted by start. Facts are only in answers to
// requests for them, and only of hosts in the inventory.
type HostCalendar struct {
	Host   string     `json:"host"`
	Facts  *HostFacts `json:"facts,omitempty"`
	Claims []Claim    `json:"claims"`
}

// Claim is a time in which a reservation holds a host or a slice of it. Mine is true if it is the
// reservation of the caller's project. Maintenance is true if operators work on the host then, and
// Name is the reason. Its project and admins see which reservation; for others, Status and OnEnd
// are empty too.
type Claim struct {
	Start     time.Time `json:"start"`
	End       time.Time `json:"end"`
	Kind      string    `json:"kind"`
	Instances int       `json:"instances,omitempty"`
	// Share is how much of the host the claim takes, from 0 to 1: for instances, the largest share
	// among the host's resources.
	Share         float64 `json:"share"`
	Mine          bool    `json:"mine"`
	Maintenance   bool    `json:"maintenance,omitempty"`
	Status        string  `json:"status,omitempty"`
	OnEnd         string  `json:"on_end,omitempty"`
	ReservationID string  `json:"reservation_id,omitempty"`
	Name          string  `json:"name,omitempty"`
	ProjectID     string  `json:"project_id,omitempty"`
}

// HostFacts are facts about a host beside its claims. Properties are those that the caller may see.
type HostFacts struct {
	Zone       string         `json:"zone"`
	Aggregates []string       `json:"aggregates"`
	Properties map[string]any `json:"properties"`
	Reservable bool           `json:"reservable"`
	// State is up, sleeping, waking or out_of_order; Problem is the reason of the last, and otherwise
	// empty.
	State   string `json:"state"`
	Problem string `json:"problem"`
	// Phase is the state of the host for the energy controller, and PhaseSince when it began; both
	// are absent without a controller, and for callers that may not see them.
	Phase         string     `json:"phase,omitempty"`
	PhaseSince    *time.Time `json:"phase_since,omitempty"`
	InstanceCount int        `json:"instance_count"`
	// PreemptibleCount is how many of the instances are preemptible; nil if the caller may not see
	// it, or if the source of the hosts only counts instances.
	PreemptibleCount *int `json:"preemptible_count,omitempty"`
}

// Limits is the answer to GET /v1/limits: what applies to a project, and what it uses now. Limits
// that do not exist are nil.
type Limits struct {
	ProjectID string       `json:"project_id"`
	Limits    LimitValues  `json:"limits"`
	Used      LimitedUsage `json:"used"`
}

// LimitValues are the operator's limits for each project.
type LimitValues struct {
	MaxDuration            *Duration `json:"max_duration"`
	MaxStartAhead          *Duration `json:"max_start_ahead"`
	MaxHostsPerProject     *int      `json:"max_hosts_per_project"`
	MaxHostHoursPerProject *float64  `json:"max_host_hours_per_project"`
	MaxEmptyLeases         *int      `json:"max_empty_leases_per_project"`
	ExtensionWindow        *Duration `json:"extension_window"`
	MaxHold                Duration  `json:"max_hold"` // 0 if nothing can be held
	MaxHoldsPerProject     *int      `json:"max_holds_per_project"`
	MaxWaitingPerProject   int       `json:"max_waiting_per_project"` // 0 if none can wait
}

// LimitedUsage is what a project's live reservations hold. An instance counts as one host.
type LimitedUsage struct {
	Reservations int     `json:"reservations"`
	HostsNow     int     `json:"hosts_now"`
	MostHosts    int     `json:"most_hosts"` // at one instant, from now on
	HostHours    float64 `json:"host_hours"`
	Holds        int     `json:"holds"`   // reservations that nobody has confirmed yet
	Waiting      int     `json:"waiting"` // reservations that wait for room, which Reservations does not count
}

// CalendarEvent is the data of an event of GET /v1/events with the name calendar: the claims in a
// span have changed. Change, ReservationID, Name, ProjectID and Status are empty for callers that may
// not see the reservation. Hosts is empty if the caller may see the reservation but not its hosts.
type CalendarEvent struct {
	Change        string    `json:"change"`
	Start         time.Time `json:"start"`
	End           time.Time `json:"end"`
	Hosts         []string  `json:"hosts"`
	Mine          bool      `json:"mine"`
	ReservationID string    `json:"reservation_id,omitempty"`
	Name          string    `json:"name,omitempty"`
	ProjectID     string    `json:"project_id,omitempty"`
	Status        string    `json:"status,omitempty"`
}

// HostsEvent is the data of an event of GET /v1/events with the name hosts: the facts of these hosts
// have changed, or they are new or gone.
type HostsEvent struct {
	Hosts []string `json:"hosts"`
}

// ResetEvent is the data of an event of GET /v1/events with the name reset: changes may be missing,
// so the client must read again what it shows.
type ResetEvent struct {
	Reason string `json:"reason"`
}

// Usage is the answer to GET /v1/usage. Rows are sorted by their name.
type Usage struct {
	Start time.Time  `json:"start"`
	End   time.Time  `json:"end"`
	By    string     `json:"by"` // project or host
	Rows  []UsageRow `json:"rows"`
	Total UsageRow   `json:"total"`
	// KeptFrom is set if Start lies before it: of the time before it, the sums of whole days remain.
	KeptFrom *time.Time `json:"kept_from,omitempty"`
}

// UsageRow is host-hours of one project, of one host, or of all. ProjectID and Host are empty in a
// total. Maintenance, Idle, Asleep and Capacity are absent in rows of projects and for callers that see
// only their own project.
type UsageRow struct {
	ProjectID   string   `json:"project_id,omitempty"`
	Host        string   `json:"host,omitempty"`
	Reserved    float64  `json:"reserved"`
	Used        float64  `json:"used"`
	Maintenance *float64 `json:"maintenance,omitempty"`
	Idle        *float64 `json:"idle,omitempty"`
	Asleep      *float64 `json:"asleep,omitempty"`
	Capacity    *float64 `json:"capacity,omitempty"`
}
