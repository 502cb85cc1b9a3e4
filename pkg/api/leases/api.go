// SPDX-License-Identifier: Apache-2.0

package leases

import (
	"context"
	"log/slog"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/api/serving"
	"github.com/almanac-cloud/almanac/pkg/blazar"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

// Options are the dependencies and settings that only these calls have.
type Options struct {
	// BeforeEnd is the default of before_end_date: how many seconds before its end the owner of a
	// lease is warned; 0 means never.
	BeforeEnd int64
	// ListAllForAdmin is true if an admin's list has the leases of all projects, even without the
	// parameter all_tenants.
	ListAllForAdmin bool
	// OnlyEnrolled is true if the calls for hosts are about the hosts of the pool only, as those of
	// Blazar are; otherwise about all.
	OnlyEnrolled bool
	// PoolChanged waits, within limits, until the cloud shows a change of the pool, as Blazar's clients
	// expect; nil if nothing there depends on the pool.
	PoolChanged func(ctx context.Context)
	// Nova is nil without a cloud.
	Nova CallersNova
	// Addresses is the pool of floating IPs, and Neutron has their networks; both are nil without a
	// Neutron.
	Addresses AddressPool
	Neutron   Neutron
}

// API serves the calls that have Blazar's form.
type API struct {
	Options
	Booker  Booker
	Changer Changer
	Live    Live
	Reader  reservation.Reader
	Leases  reservation.LeaseReader
	Hosts   Hosts
	Now     func() span.Instant
	Log     *slog.Logger
	// NewID returns a new id for a reservation or a floating IP.
	NewID func() string
}

// Booker books leases. OfferLease returns what BookLease would book.
type Booker interface {
	OfferLease(ctx context.Context, by booking.Caller, r reservation.LeaseRequest) (reservation.LeaseRecord, error)
	BookLease(ctx context.Context, by booking.Caller, r reservation.LeaseRequest) (reservation.LeaseRecord, error)
}

// Changer changes and cancels leases. OfferLeaseChange returns what ChangeLease would do.
type Changer interface {
	OfferLeaseChange(ctx context.Context, by booking.Caller, id string, c reservation.LeaseChange) (reservation.LeaseRecord, error)
	ChangeLease(ctx context.Context, by booking.Caller, id string, c reservation.LeaseChange) (reservation.LeaseRecord, error)
	CancelLease(ctx context.Context, by booking.Caller, id string) (reservation.LeaseRecord, error)
}

// Live are the live reservations, and the turns of projects.
type Live interface {
	Live(overlaps span.Span) []reservation.Reservation
	// InTurn runs do in a project's turn. It fails if the turn does not come before ctx ends.
	InTurn(ctx context.Context, project string, do func()) error
}

// Hosts reads and changes hosts; *inventory.SnapshotCache implements it.
type Hosts interface {
	Snapshot() *inventory.Snapshot
	// Enroll changes a host of the pool.
	Enroll(ctx context.Context, host string, e inventory.Enrollment) error
	// SetHidden hides a property from tenants, or shows it.
	SetHidden(ctx context.Context, property string, hidden bool) error
}

// bodyOf returns the body of a request, an object of at most `most` bytes.
func bodyOf(c *serving.Call, most int64) (blazar.Object, error) {
	raw, err := c.RawBody(most)
	if err != nil {
		return nil, err
	}
	return blazar.ReadObject(raw)
}

// allow returns Blazar's error unless the rule allows the asker to act on a resource of project.
func allow(c *serving.Call, rule, project string) error {
	if err := c.Asker().Check(rule, project); err != nil {
		return blazar.NotAllowed(rule, err)
	}
	return nil
}

// allowed admits callers that the rule allows to act on resources of their own project, or on
// resources without a project.
func allowed(rule string) serving.Step {
	return func(c *serving.Call) {
		if err := allow(c, rule, c.Asker().ProjectID); err != nil {
			c.Fail(err)
		}
	}
}

// leases serves the calls about leases.
type leases struct {
	API
	texts *texts
}

// hosts serves the calls about hosts.
type hosts struct{ API }

// addresses serves the calls about floating IPs.
type addresses struct {
	Options
	Now   func() span.Instant
	NewID func() string
}

// AddressPool is the floating IPs that can be reserved.
type AddressPool interface {
	// Enrolled returns the addresses of the pool of all networks, sorted by network, then address.
	Enrolled(ctx context.Context) ([]address.Enrolled, error)
	// Enroll adds an address. It fails with a Conflict fault if the pool has it already, or is full.
	Enroll(ctx context.Context, a address.Enrolled) error
	// Withdraw removes an address. It fails with a NotFound fault if there is none of that id, and with
	// a Conflict fault while a live reservation claims it.
	Withdraw(ctx context.Context, id string) error
}

// Neutron reads networks.
type Neutron interface {
	// Network returns a network with its subnets; a missing network is a NotFound fault.
	Network(ctx context.Context, id string) (address.Network, error)
}

// CallersNova does in Nova what needs the rights of the sender of a request; *nova.Client implements
// it.
type CallersNova interface {
	// FlavorAs returns the flavor with the id as the owner of the token sees it, and its JSON in
	// Nova's form.
	FlavorAs(ctx context.Context, token, id string) (f inventory.Flavor, text string, err error)
	// CreateGroupAs creates a server group in the project of the owner of the token. DeleteGroup
	// deletes one of any project.
	CreateGroupAs(ctx context.Context, token, name, policy string) (id string, err error)
	DeleteGroup(ctx context.Context, id string) error
}
