// SPDX-License-Identifier: Apache-2.0

package upkeep

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/placing"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
	"github.com/almanac-cloud/almanac/reservation/booking"
)

const floatingEvery = 10 * time.Second

// FloatingIPs reads and changes the floating IPs of all projects in Neutron.
type FloatingIPs interface {
	// Floating returns the floating IPs that exist at addresses of a network.
	Floating(ctx context.Context, network string, addresses []string) ([]address.Floating, error)
	// PutFloating creates a floating IP of a reservation, unless it has an id, and sets its tags.
	PutFloating(ctx context.Context, f address.Floating) error
	// DeleteFloating detaches and deletes a floating IP; a missing one is no error.
	DeleteFloating(ctx context.Context, f address.Floating) error
}

// EnrolledAddresses lists the pool of floating IPs.
type EnrolledAddresses interface {
	// Enrolled returns the addresses of the pool of all networks, sorted by network.
	Enrolled(ctx context.Context) ([]address.Enrolled, error)
}

// Networks carries out the starts and ends of reservations of floating IPs. It is safe for concurrent
// use, by several replicas too: every action can be repeated by any of them.
type Networks struct {
	Floating FloatingIPs
	Pool     EnrolledAddresses
	Promises Promises
	Records  booking.Recaller
	Leases   job.Leases
	Now      func() span.Instant
	Log      *slog.Logger
}

func holder(r *reservation.Reservation) address.Holder {
	return address.Holder{ID: r.ID, Project: r.ProjectID, Claims: r.Addresses}
}

// Carry implements booking.Cloud: the start creates the floating IPs, the end deletes them.
func (s *Networks) Carry(ctx context.Context, r reservation.Reservation, event reservation.EventType) error {
	switch event {
	case reservation.StartEvent:
		now, live := s.Promises.Reservation(r.ID)
		if !live {
			return fault.New(fault.Conflict, "the reservation was canceled before it had started")
		}
		if now.Span.End <= s.Now() { // its addresses may belong to others
			return fault.New(fault.Conflict, "the reservation ended before it had started")
		}
		return s.start(ctx, &now)
	case reservation.EndEvent:
		return s.end(ctx, &r)
	}
	return nil
}

// start creates the floating IPs that the reservation lacks. It fails with a Conflict fault while
// somebody else has one of them.
func (s *Networks) start(ctx context.Context, r *reservation.Reservation) error {
	there, err := s.of(ctx, r)
	if err != nil {
		return err
	}
	create, obstacles := address.Start(holder(r), there)
	if len(obstacles) > 0 {
		taken := fault.New(fault.Conflict, "floating IP %s still exists in Neutron; the start waits until it is deleted there", obstacles[0].Address)
		taken.Err = errors.New("it is floating IP " + obstacles[0].ID + " of project " + obstacles[0].Project)
		return taken
	}
	for _, f := range create {
		if err := s.Floating.PutFloating(ctx, f); err != nil {
			return wrapForUser(err, "create floating IP %s", f.Address)
		}
		s.Log.InfoContext(ctx, "created a floating IP", "reservation", r.ID, "address", f.Address, "network", f.Network)
	}
	return nil
}

// end deletes the floating IPs of the reservation.
func (s *Networks) end(ctx context.Context, r *reservation.Reservation) error {
	there, err := s.of(ctx, r)
	if err != nil {
		return err
	}
	mine := slices.DeleteFunc(there, func(f address.Floating) bool { return f.Reservation != r.ID && s.belongs(f) })
	return s.remove(ctx, address.End(holder(r), mine))
}

// belongs reports whether the floating IP is that of a live reservation, whose mark it has.
func (s *Networks) belongs(f address.Floating) bool {
	r, live := s.Promises.Reservation(f.Reservation)
	return live && r.BelongsTo(f.Project) && slices.ContainsFunc(r.Addresses, func(c address.Claim) bool {
		return c.Network == f.Network && c.Address == f.Address
	})
}

func (s *Networks) remove(ctx context.Context, list []address.Floating) error {
	var errs []error
	for _, f := range list {
		if err := s.Floating.DeleteFloating(ctx, f); err != nil {
			errs = append(errs, wrapForUser(err, "delete floating IP %s", f.Address))
			continue
		}
		s.Log.InfoContext(ctx, "deleted a floating IP", "reservation", f.Reservation, "address", f.Address, "network", f.Network)
	}
	return errors.Join(errs...)
}

// of returns the floating IPs that exist at the addresses of a reservation.
func (s *Networks) of(ctx context.Context, r *reservation.Reservation) ([]address.Floating, error) {
	if len(r.Addresses) == 0 {
		return nil, nil
	}
	list := make([]string, len(r.Addresses))
	for i, a := range r.Addresses {
		list[i] = a.Address
	}
	there, err := s.Floating.Floating(ctx, r.Addresses[0].Network, list)
	if err != nil {
		return nil, wrapForUser(err, "read the floating IPs of the reservation")
	}
	return there, nil
}

// Job returns the job that restores what is missing or left: floating IPs that active reservations
// lack, since their amount has grown or somebody has deleted one, and those of reservations that are
// over, since they were canceled during their start or their end has failed.
func (s *Networks) Job() job.Job {
	const name = "floating IPs of reservations"
	return job.Job{Name: name, Every: floatingEvery, Step: job.Leased(s.Leases, name, leaseTTL, func(ctx context.Context, _ *job.Held) error {
		return s.restore(ctx)
	})}
}

func (s *Networks) restore(ctx context.Context) error {
	there, err := s.existing(ctx)
	if err != nil {
		return err
	}
	left, err := s.left(ctx, there)
	errs := []error{err, s.remove(ctx, left)}
	there = slices.DeleteFunc(there, func(f address.Floating) bool { return slices.Contains(left, f) })
	for _, r := range s.Promises.Live(span.Always) {
		if r.Kind != reservation.Addresses || r.Status != reservation.Active || r.Span.End <= s.Now() {
			continue
		}
		if create, obstacles := address.Start(holder(&r), there); len(create)+len(obstacles) > 0 {
			errs = append(errs, s.start(ctx, &r))
		}
	}
	return errors.Join(errs...)
}

// existing returns the floating IPs that exist at the addresses of the pool.
func (s *Networks) existing(ctx context.Context) (there []address.Floating, err error) {
	enrolled, err := s.Pool.Enrolled(ctx)
	if err != nil {
		return nil, err
	}
	pools := map[string][]string{}
	for _, a := range enrolled {
		pools[a.Network] = append(pools[a.Network], a.Address)
	}
	for _, network := range slices.Sorted(maps.Keys(pools)) {
		found, err := s.Floating.Floating(ctx, network, pools[network])
		if err != nil {
			return nil, wrapForUser(err, "read the floating IPs of the pool")
		}
		there = append(there, found...)
	}
	return there, nil
}

// left returns those that were created for reservations that are over. The records decide, since
// anybody can set such a tag.
func (s *Networks) left(ctx context.Context, there []address.Floating) ([]address.Floating, error) {
	var ids []string
	for _, f := range there {
		if _, live := s.Promises.Reservation(f.Reservation); !live && placing.IsUUID(f.Reservation) {
			ids = append(ids, f.Reservation)
		}
	}
	slices.Sort(ids)
	known, err := booking.Stored(ctx, s.Records, slices.Compact(ids))
	if err != nil {
		return nil, wrapForUser(err, "read the reservations that have floating IPs")
	}
	over := map[string]bool{}
	for _, r := range known {
		over[r.ID] = !r.Status.Live()
	}
	return slices.DeleteFunc(slices.Clone(there), func(f address.Floating) bool { return !over[f.Reservation] }), nil
}
