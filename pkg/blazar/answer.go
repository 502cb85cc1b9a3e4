// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"cmp"
	"encoding/json"
	"strconv"

	"github.com/google/uuid"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Lease is a lease in an answer.
type Lease struct {
	ID string `json:"id"`
	LeaseBody
}

// Payload is a lease in a notification (blazar/notification/api.py, format_lease_payload).
type Payload struct {
	LeaseID string `json:"lease_id"`
	LeaseBody
}

// LeaseBody is what an answer and a notification say about a lease
// (blazar/db/sqlalchemy/models.py, Lease.to_dict).
type LeaseBody struct {
	Name         string        `json:"name"`
	UserID       string        `json:"user_id"`
	ProjectID    string        `json:"project_id"`
	TrustID      *string       `json:"trust_id"` // null: Almanac needs no trusts
	StartDate    string        `json:"start_date"`
	EndDate      string        `json:"end_date"`
	Status       string        `json:"status"`
	Degraded     bool          `json:"degraded"`
	CreatedAt    string        `json:"created_at"`
	UpdatedAt    string        `json:"updated_at"`
	Reservations []Reservation `json:"reservations"`
	Events       []Event       `json:"events"`
}

// Reservation is one reservation of a lease.
type Reservation struct {
	ID               string `json:"id"`
	LeaseID          string `json:"lease_id"`
	ResourceID       string `json:"resource_id"`
	ResourceType     string `json:"resource_type"`
	Status           string `json:"status"`
	MissingResources bool   `json:"missing_resources"`
	ResourcesChanged bool   `json:"resources_changed"`
	CreatedAt        string `json:"created_at"`
	UpdatedAt        string `json:"updated_at"`
	// ResourceProperties is JSON; nil for virtual:floatingip, which has none. Amount is nil for
	// physical:host.
	ResourceProperties *string `json:"resource_properties,omitempty"`
	Amount             *int    `json:"amount,omitempty"`
	// OnEnd is empty below microversion 1.1, and for virtual:floatingip.
	OnEnd string `json:"on_end,omitempty"`
	*hostFields
	*instanceFields
	*floatingFields
}

// hostFields are the fields that only resource type physical:host has.
type hostFields struct {
	HypervisorProperties string `json:"hypervisor_properties"`
	BeforeEnd            string `json:"before_end"`
	Min                  int    `json:"min"`
	Max                  int    `json:"max"`
}

// instanceFields are the fields that only the resource types virtual:instance and flavor:instance have.
type instanceFields struct {
	VCPUs         int64   `json:"vcpus"`
	MemoryMB      int64   `json:"memory_mb"`
	DiskGB        int64   `json:"disk_gb"`
	Affinity      *bool   `json:"affinity"`
	FlavorID      string  `json:"flavor_id"`
	AggregateID   *int    `json:"aggregate_id"`
	ServerGroupID *string `json:"server_group_id"`
}

// Event is an event of a lease. Those that the owner asked for have neither a time nor a status.
type Event struct {
	ID        string  `json:"id"`
	LeaseID   string  `json:"lease_id"`
	EventType string  `json:"event_type"`
	Time      *string `json:"time"`
	Status    *string `json:"status"`
	CreatedAt string  `json:"created_at"`
	UpdatedAt *string `json:"updated_at"`
}

// LeaseOf returns a lease at now for an answer.
func LeaseOf(l *reservation.LeaseRecord, now span.Instant) Lease { return Lease{l.ID, bodyOf(l, now)} }

// ExtendedLeaseOf is LeaseOf at microversion 1.1.
func ExtendedLeaseOf(l *reservation.LeaseRecord, now span.Instant) Lease {
	out := LeaseOf(l, now)
	for i := range out.Reservations {
		if r := &l.Reservations[i]; r.Kind != reservation.Addresses { // they have no servers
			out.Reservations[i].OnEnd = string(r.OnEnd)
		}
	}
	return out
}

// PayloadOf returns the lease of a reservation at now for a notification, which knows only this
// reservation of it.
func PayloadOf(r *reservation.Reservation, now span.Instant) Payload {
	l := reservation.OwnLease(*r)
	if r.Membership.LeaseID != "" {
		l.ID = r.Membership.LeaseID
	}
	return Payload{l.ID, bodyOf(&l, now)}
}

// bodyOf returns a lease in Blazar's form, with its reservations and events.
func bodyOf(l *reservation.LeaseRecord, now span.Instant) LeaseBody {
	body := LeaseBody{
		Name: l.Name, UserID: l.UserID, ProjectID: l.ProjectID,
		StartDate: Time(l.Span.Start), EndDate: Time(l.Span.End), Status: Status(l, now),
		Reservations: make([]Reservation, len(l.Reservations)), Events: eventsOf(l, now),
		CreatedAt: RowTime(l.Created),
	}
	updated := l.Updated
	for i := range l.Reservations {
		r := &l.Reservations[i]
		body.Reservations[i] = reservationOf(l.ID, r)
		body.Degraded = body.Degraded || r.Degraded != ""
		updated = max(updated, r.Updated)
	}
	body.UpdatedAt = RowTime(updated)
	return body
}

// resourceType returns Blazar's name of the kind of a reservation.
func resourceType(r *reservation.Reservation) string {
	switch {
	case r.Kind == reservation.Hosts:
		return Hosts
	case r.Kind == reservation.Addresses:
		return FloatingIPs
	case r.Membership.Flavor != "":
		return Flavors
	}
	return Instances
}

// quantities returns the bounds of the quantity that the owner accepts.
func quantities(r *reservation.Reservation) (least, most int) {
	if r.Membership.Max == 0 {
		return r.Quantity, r.Quantity
	}
	return r.Membership.Min, r.Membership.Max
}

// writtenBy returns the queries as the owner wrote them. Of a reservation that was not booked in Blazar's form
// it is the filter, in Almanac's language; of one for a flavor, properties is the flavor.
func writtenBy(r *reservation.Reservation) (hypervisor, properties string) {
	m := r.Membership
	if m.HypervisorProperties == "" {
		return "", cmp.Or(m.Flavor, m.ResourceProperties, r.HostProperties)
	}
	return m.HypervisorProperties, cmp.Or(m.Flavor, m.ResourceProperties)
}

// reservationOf returns a reservation of the lease in Blazar's form, with the fields of its kind only.
func reservationOf(lease string, r *reservation.Reservation) Reservation {
	hypervisor, properties := writtenBy(r)
	out := Reservation{
		ID: r.ID, LeaseID: lease, ResourceID: r.ID, ResourceType: resourceType(r), Status: reservationStatuses[r.Status],
		MissingResources: r.Degraded != "", ResourcesChanged: healedInUse(r),
		CreatedAt: RowTime(r.Created), UpdatedAt: RowTime(r.Updated),
	}
	if r.Kind == reservation.Addresses {
		out.Amount, out.floatingFields = &r.Quantity, floatingFieldsOf(r)
		return out
	}
	out.ResourceProperties = &properties
	if r.Kind == reservation.Hosts {
		out.hostFields = &hostFields{HypervisorProperties: hypervisor, BeforeEnd: r.Membership.EndAction}
		out.Min, out.Max = quantities(r)
		return out
	}
	out.instanceFields = &instanceFields{
		VCPUs: r.Resources.VCPUs, MemoryMB: r.Resources.MemoryMB, DiskGB: r.Resources.DiskGB,
		FlavorID: r.ID,
	}
	out.Amount = &r.Quantity
	if id := r.Membership.ServerGroup; id != "" {
		out.ServerGroupID = &id
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
	start, ok := r.LastEvent(reservation.StartEvent)
	healed, ever := r.LastEvent(reservation.HealedEvent)
	return ok && ever && start.State == reservation.EventDone && healed.Done >= start.Done
}

// eventsOf returns the events of a lease: its start, the warning before the end if there is one, its
// end, and those that the owner asked for. Events that a canceled or failed lease never reached stay
// UNDONE. If the lease failed, its start is in ERROR, or its end if it had started.
func eventsOf(l *reservation.LeaseRecord, now span.Instant) []Event {
	start, end := progressByClock(l.Span.Start, now), progressByClock(l.Span.End, now)
	warning, warned := progressByClock(l.BeforeEnd, now), l.BeforeEnd > 0
	if len(l.Reservations) > 0 {
		start, _ = progressOf(l, reservation.StartEvent, l.Span.Start)
		end, _ = progressOf(l, reservation.EndEvent, l.Span.End)
		warning, warned = progressOf(l, reservation.BeforeEndEvent, l.BeforeEnd)
	}
	switch {
	case Status(l, now) != failed:
	case start.status != eventStatuses[reservation.EventDone]:
		start.status = failed
	default:
		end.status = failed
	}
	events := []Event{eventOf(l, "start_lease", start)}
	if warned {
		events = append(events, eventOf(l, "before_end_lease", warning))
	}
	return append(append(events, eventOf(l, "end_lease", end)), requested(l)...)
}

// eventOf returns the event with that name in Blazar's form. Its id follows from the lease and the name.
func eventOf(l *reservation.LeaseRecord, name string, p progress) Event {
	e := Event{
		ID: nameID(l.ID + "/" + name), LeaseID: l.ID, EventType: name, Time: new(Time(p.at)), Status: &p.status, CreatedAt: RowTime(l.Created),
	}
	if p.done > 0 {
		e.UpdatedAt = new(RowTime(p.done))
	}
	return e
}

// requested returns the events that the owner asked for. Nothing happens at them, as in Blazar.
func requested(l *reservation.LeaseRecord) []Event {
	if l.Events == "" {
		return nil
	}
	var stored []Object
	if err := json.Unmarshal([]byte(l.Events), &stored); err != nil {
		return nil // Reader stores a list of objects
	}
	events := make([]Event, len(stored))
	for i, o := range stored {
		name, _, _ := o.text("event_type") // Reader accepts a text or nothing
		events[i] = Event{ID: nameID(l.ID + "/requested/" + strconv.Itoa(i)), LeaseID: l.ID, EventType: name, CreatedAt: RowTime(l.Created)}
	}
	return events
}

// nameID returns the UUID, version 5, of a part of a lease: the same each time.
func nameID(part string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("almanac:"+part)).String()
}
