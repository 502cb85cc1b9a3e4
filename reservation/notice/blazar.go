package notice

import (
	"slices"

	"github.com/almanac-cloud/almanac/pkg/oslo"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// leasePublisher is the default of Blazar's [notifications] publisher_id.
const leasePublisher = "blazar.lease"

// leaseEventTypes maps actions to Blazar's event types
// (blazar/manager/service.py, _send_notification and its callers). Other actions have no
// notification. Blazar heals without one; here healing sends an update with the lease's
// current flags.
var leaseEventTypes = map[reservation.Action]string{
	reservation.ActionCreate:    "lease.create",
	reservation.ActionModify:    "lease.update",
	reservation.ActionCancel:    "lease.delete",
	reservation.ActionStart:     "lease.event.start_lease",
	reservation.ActionWarnOfEnd: "lease.event.before_end_lease",
	reservation.ActionEnd:       "lease.event.end_lease",
	reservation.ActionHeal:      "lease.update",
	reservation.ActionDegrade:   "lease.update",
	reservation.ActionRestore:   "lease.update",
}

// warningVoid is sent after an update if an owner who was warned of the end will be warned again.
const warningVoid = "lease.event.before_end_lease.stop"

// Blazar's names of the statuses (blazar/status.py).
var (
	leaseStatus = map[reservation.Status]string{
		reservation.Pending:  "PENDING",
		reservation.Starting: "STARTING",
		reservation.Active:   "ACTIVE",
		reservation.Ending:   "TERMINATING",
		reservation.Ended:    "TERMINATED",
		reservation.Canceled: "DELETING",
		reservation.Failed:   "ERROR",
	}
	leaseReservationStatus = map[reservation.Status]string{
		reservation.Pending:  "pending",
		reservation.Starting: "pending",
		reservation.Active:   "active",
		reservation.Ending:   "active",
		reservation.Ended:    "deleted",
		reservation.Canceled: "deleted",
		reservation.Failed:   "error",
	}
	leaseEventStatus = map[reservation.EventState]string{
		reservation.EventDue:     "UNDONE",
		reservation.EventRunning: "IN_PROGRESS",
		reservation.EventDone:    "DONE",
	}
)

// leaseEvents returns the notifications in Blazar's format. As in Blazar, all have
// priority info, even failures.
func leaseEvents(change reservation.Change) []event {
	eventType, told := leaseEventTypes[change.Action]
	if !told {
		return nil
	}
	r := &change.Reservation
	events := []event{{leasePublisher, eventType, oslo.Info, leaseOf(r)}}
	warned := slices.ContainsFunc(r.Events, func(e reservation.Event) bool {
		return e.Type == reservation.BeforeEndEvent && e.State == reservation.EventDone
	})
	if e, ok := last(r, reservation.BeforeEndEvent); change.Action == reservation.ActionModify && warned && ok && e.State == reservation.EventDue {
		events = append(events, event{leasePublisher, warningVoid, oslo.Info, leaseOf(r)})
	}
	return events
}

// lease is Blazar's payload (blazar/notification/api.py, format_lease_payload).
type lease struct {
	LeaseID      string             `json:"lease_id"`
	Name         string             `json:"name"`
	UserID       string             `json:"user_id"`
	ProjectID    string             `json:"project_id"`
	TrustID      *string            `json:"trust_id"` // null: Almanac needs no trusts
	StartDate    string             `json:"start_date"`
	EndDate      string             `json:"end_date"`
	Status       string             `json:"status"`
	Degraded     bool               `json:"degraded"`
	CreatedAt    string             `json:"created_at"`
	UpdatedAt    string             `json:"updated_at"`
	Reservations []leaseReservation `json:"reservations"`
	Events       []leaseEvent       `json:"events"`
}

// leaseReservation is the only reservation of a lease. It has the id of the lease, since
// the hint of an instance may name either (blazar/db/sqlalchemy/models.py,
// Reservation.to_dict).
type leaseReservation struct {
	ID                 string `json:"id"`
	LeaseID            string `json:"lease_id"`
	ResourceID         string `json:"resource_id"`
	ResourceType       string `json:"resource_type"`
	Status             string `json:"status"`
	MissingResources   bool   `json:"missing_resources"`
	ResourcesChanged   bool   `json:"resources_changed"`
	CreatedAt          string `json:"created_at"`
	UpdatedAt          string `json:"updated_at"`
	ResourceProperties string `json:"resource_properties"` // JSON
	*leaseHosts
	*leaseInstances
}

// leaseHosts are the fields that only resource type physical:host has.
type leaseHosts struct {
	HypervisorProperties string `json:"hypervisor_properties"`
	BeforeEnd            string `json:"before_end"`
	Min                  int    `json:"min"`
	Max                  int    `json:"max"`
}

// leaseInstances are the fields that only resource type virtual:instance has.
type leaseInstances struct {
	VCPUs         int64   `json:"vcpus"`
	MemoryMB      int64   `json:"memory_mb"`
	DiskGB        int64   `json:"disk_gb"`
	Amount        int     `json:"amount"`
	Affinity      *bool   `json:"affinity"`
	FlavorID      string  `json:"flavor_id"`
	AggregateID   *int    `json:"aggregate_id"`
	ServerGroupID *string `json:"server_group_id"`
}

type leaseEvent struct {
	ID        string  `json:"id"`
	LeaseID   string  `json:"lease_id"`
	EventType string  `json:"event_type"`
	Time      string  `json:"time"`
	Status    string  `json:"status"`
	CreatedAt string  `json:"created_at"`
	UpdatedAt *string `json:"updated_at"`
}

func leaseOf(r *reservation.Reservation) lease {
	return lease{
		LeaseID: r.ID, Name: r.Name, UserID: r.UserID, ProjectID: r.ProjectID,
		StartDate: leaseTime(r.Span.Start), EndDate: leaseTime(r.Span.End),
		Status: leaseStatus[r.Status], Degraded: r.Degraded != "",
		CreatedAt: rowTime(r.Created), UpdatedAt: rowTime(r.Updated),
		Reservations: []leaseReservation{leaseReservationOf(r)}, Events: leaseEventsOf(r),
	}
}

func leaseReservationOf(r *reservation.Reservation) leaseReservation {
	out := leaseReservation{
		ID: r.ID, LeaseID: r.ID, ResourceID: r.ID, Status: leaseReservationStatus[r.Status],
		MissingResources: r.Degraded != "", ResourcesChanged: healedInUse(r), ResourceProperties: r.HostProperties,
		CreatedAt: rowTime(r.Created), UpdatedAt: rowTime(r.Updated),
	}
	if r.Kind == reservation.Hosts {
		out.ResourceType = "physical:host"
		out.leaseHosts = &leaseHosts{Min: r.Quantity, Max: r.Quantity}
		return out
	}
	out.ResourceType = "virtual:instance"
	out.leaseInstances = &leaseInstances{
		VCPUs: r.Resources.VCPUs, MemoryMB: r.Resources.MemoryMB, DiskGB: r.Resources.DiskGB,
		Amount: r.Quantity, FlavorID: r.ID,
	}
	switch r.Affinity {
	case calendar.AffinitySame:
		out.Affinity = new(true)
	case calendar.AffinityDifferent:
		out.Affinity = new(false)
	}
	return out
}

// healedInUse reports whether hosts were replaced after the start. Blazar marks only active
// reservations (blazar/plugins/oshosts/host_plugin.py, heal_reservations).
func healedInUse(r *reservation.Reservation) bool {
	start, ok := last(r, reservation.StartEvent)
	healed, ever := last(r, reservation.HealedEvent)
	return ok && ever && start.State == reservation.EventDone && healed.Done >= start.Done
}

// leaseEventsOf returns the events of a lease: its start, its end, and the warning before
// the end if there is one. Events that a canceled or failed reservation never reached stay
// UNDONE. If the reservation failed, its start is in ERROR, or its end if it had started.
func leaseEventsOf(r *reservation.Reservation) []leaseEvent {
	start, ok := last(r, reservation.StartEvent)
	if !ok {
		start = reservation.Event{Time: r.Span.Start, State: reservation.EventDue}
	}
	end, ok := last(r, reservation.EndEvent)
	if !ok {
		end = reservation.Event{Time: r.Span.End, State: reservation.EventDue}
	}
	events := []leaseEvent{leaseEventOf(r, "start_lease", start), leaseEventOf(r, "end_lease", end)}
	switch {
	case r.Status != reservation.Failed:
	case start.State != reservation.EventDone:
		events[0].Status = "ERROR"
	default:
		events[1].Status = "ERROR"
	}
	if e, ok := last(r, reservation.BeforeEndEvent); ok {
		events = slices.Insert(events, 1, leaseEventOf(r, "before_end_lease", e))
	}
	return events
}

func leaseEventOf(r *reservation.Reservation, name string, e reservation.Event) leaseEvent {
	out := leaseEvent{
		ID: nameID("almanac:" + r.ID + "/" + name), LeaseID: r.ID, EventType: name,
		Time: leaseTime(e.Time), Status: leaseEventStatus[e.State], CreatedAt: rowTime(r.Created),
	}
	if e.State == reservation.EventDone {
		out.UpdatedAt = new(rowTime(e.Done))
	}
	return out
}

// last returns the last event of a type in the log.
func last(r *reservation.Reservation, t reservation.EventType) (reservation.Event, bool) {
	for _, e := range slices.Backward(r.Events) {
		if e.Type == t {
			return e, true
		}
	}
	return reservation.Event{}, false
}

// leaseTime formats a time as oslo_serialization does in a message.
func leaseTime(at span.Instant) string { return at.Time().Format("2006-01-02T15:04:05.000000") }

// rowTime formats a time as Blazar does for created_at and updated_at of a row
// (blazar/db/sqlalchemy/model_base.py, datetime_to_str).
func rowTime(at span.Instant) string { return at.Time().Format("2006-01-02 15:04:05") }
