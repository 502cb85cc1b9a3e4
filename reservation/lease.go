// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"context"
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation/calendar"
)

// Lease is a group of reservations with the same times, which are booked, changed and canceled
// together. It is the unit of Blazar's API. A lease may have no reservations.
type Lease struct {
	ID        string
	ProjectID string
	UserID    string
	Name      string
	Span      span.Span
	// BeforeEnd is when the owner is warned of the end.
	BeforeEnd span.Instant
	// Events are the events that the owner requested, as a JSON list. Almanac stores and shows them,
	// as Blazar does, and does nothing else with them. It may be empty.
	Events           string
	Created, Updated span.Instant
	// Deleted is when the owner deleted the lease; 0 means not. A deleted lease is not shown.
	Deleted span.Instant
	// Version increases by one with every stored change of the lease itself.
	Version int64
}

// Membership is what only the reservations of a lease have. All others have at most Min and Max, which
// are 0 unless their owner has set them as those of a lease.
type Membership struct {
	LeaseID string `json:"-"`
	// Min and Max bound the quantity that the owner accepts; a Max of 0 means the quantity itself.
	Min int `json:"min,omitempty"`
	Max int `json:"max,omitempty"`
	// HypervisorProperties and ResourceProperties are the filter in Blazar's language, as the owner
	// wrote it.
	HypervisorProperties string `json:"hypervisor_properties,omitempty"`
	ResourceProperties   string `json:"resource_properties,omitempty"`
	// EndAction is what Blazar calls before_end: what happens to the servers when the owner is warned
	// of the end. EndSnapshot makes images of them; "", "default" and what Almanac does not know do
	// nothing.
	EndAction string `json:"before_end,omitempty"`
	// Flavor is the flavor of Nova for which instances are reserved, as JSON in Nova's form. Empty
	// means that the owner requested an amount of resources.
	Flavor string `json:"flavor,omitempty"`
	// ServerGroup is the id of the server group in Nova that was created for the reservation; empty if
	// there is none.
	ServerGroup string `json:"server_group_id,omitempty"`
}

// EndSnapshot is the Membership.EndAction that makes an image of each server before the end.
const EndSnapshot = "snapshot"

// LeaseRecord is a lease with its reservations.
type LeaseRecord struct {
	Lease
	Reservations []Reservation
}

// LeaseRequest asks for a lease from Start to End.
type LeaseRequest struct {
	Name       string
	Start, End span.Instant // without Start, the lease starts now
	// Duration is how many seconds the lease lasts: it starts as early as possible, not before Start,
	// so that it ends by End. 0 means that it lasts from Start to End.
	Duration int64
	// BeforeEnd is when the owner is warned if the lease ends at End; 0 means never. If the lease ends
	// earlier, the warning is as long before the end.
	BeforeEnd span.Instant
	Events    string // see Lease
	Members   []MemberRequest
	// EndFollows is true if End follows from Start and a length: a lease that has to wait for hosts to
	// boot ends as much later.
	EndFollows bool
	// Minutes is true if the client can only name starts that are whole minutes: the earliest start in
	// a refusal is one.
	Minutes bool
}

// MemberRequest asks for one reservation of a lease: for as many hosts or instances as possible
// between Min and Max. The name, quantity and times of its Terms do not count.
type MemberRequest struct {
	// ID is the id of the reservation; empty means a new one.
	ID string
	Terms
	Membership
	// Network is the network of the floating IPs of kind address, and RequiredAddresses those that
	// must be among them.
	Network           string
	RequiredAddresses []string
}

// LeaseChange changes a lease. A nil field leaves its part as it is.
type LeaseChange struct {
	Name       *string
	Start, End *span.Instant
	// Duration is how many seconds the lease lasts; it takes the place of End. 0 means that the end is
	// not chosen in this way.
	Duration int64
	// Deadline moves a lease that has not begun: it starts as early as possible, not before Start or
	// its present start, so that it ends by Deadline. Without Duration, it lasts as long as before.
	Deadline *span.Instant
	// BeforeEnd is when the owner is warned of the end. Without it, the warning keeps its distance
	// to the end.
	BeforeEnd *span.Instant
	// Warning takes the place of BeforeEnd: how many seconds before the end the owner is warned, but at the start at the
	// earliest; 0 means never.
	Warning *int64
	// OnEnd is what happens to the instances of all reservations of the lease at the end.
	OnEnd   *OnEnd
	Members []MemberChange
}

// MemberChange changes one reservation of a lease. A nil field leaves its part as it is.
type MemberChange struct {
	ID string
	// Min and Max are new bounds of the quantity.
	Min, Max *int
	// HostProperties is a new filter, as JSON; HypervisorProperties and ResourceProperties are the
	// same as the owner wrote it.
	HostProperties, HypervisorProperties, ResourceProperties *string
	// Resources and Affinity apply to kind instance.
	Resources *resource.Vector
	Affinity  *calendar.Affinity
	// AnyAddress is true if the owner no longer requires any address by name. It applies to kind
	// address.
	AnyAddress bool
}

// LeaseQuery selects leases for a list, sorted by start, then id.
type LeaseQuery struct {
	ProjectID string // empty selects every project
	ID, Name  string // empty selects any
	// Stored leaves out the reservations that belong to no lease.
	Stored bool
	Marker string // the id of the last lease of the previous page; empty means the first page
	Limit  int    // the maximum length of the list; 0 means no limit
}

// LeaseState identifies what is stored of a lease. If two states of a lease are equal, the lease did
// not change between them.
type LeaseState struct {
	ID      string
	Version int64 // of the lease itself
	// Reservations is the number of its reservations, and Versions the sum of their versions, which
	// only grow.
	Reservations, Versions int64
}

// State returns the state in which a lease was read.
func (l *LeaseRecord) State() LeaseState {
	s := LeaseState{ID: l.ID, Version: l.Version, Reservations: int64(len(l.Reservations))}
	for i := range l.Reservations {
		s.Versions += l.Reservations[i].Version
	}
	return s
}

// VersionText returns the state as a text, which a client names for a change that is for this state alone.
func (l *LeaseRecord) VersionText() string {
	s := l.State()
	return fmt.Sprintf("%d.%d.%d", s.Version, s.Reservations, s.Versions)
}

// LeaseReader reads stored leases. A reservation that belongs to no lease appears as a lease of the
// same id with this one reservation, unless it is maintenance. The reservations of a lease are sorted
// by id.
type LeaseReader interface {
	// Lease returns one lease. It fails with a NotFound fault if there is none, or if it was deleted.
	Lease(ctx context.Context, id string) (LeaseRecord, error)
	// LeaseStates returns the states of the leases that q selects, in the order of the list. An
	// unknown marker is an Invalid fault with the field marker.
	LeaseStates(ctx context.Context, q LeaseQuery) ([]LeaseState, error)
	// LeasesOf returns the leases with these ids, in any order, without those that do not exist or
	// were deleted.
	LeasesOf(ctx context.Context, ids []string) ([]LeaseRecord, error)
}

// NoLease are the statuses in which a reservation that belongs to no lease appears as none.
var NoLease = []Status{Waiting, Canceled}

// OwnLease returns the lease in which a reservation appears that belongs to none.
func OwnLease(r Reservation) LeaseRecord {
	l := Lease{
		ID: r.ID, ProjectID: r.ProjectID, UserID: r.UserID, Name: r.Name, Span: r.Span,
		Created: r.Created, Updated: r.Updated, Version: r.Version,
	}
	if r.BeforeEnd > 0 {
		l.BeforeEnd = r.Span.End.Add(-r.BeforeEnd)
	}
	return LeaseRecord{l, []Reservation{r}}
}
