// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/turns"
)

// Service books reservations. It is safe for concurrent use, and any number of services
// may share the same records. It consists of its subjects, each with the calls of one kind; a caller
// names the one to three calls that it needs in a port of its own.
//
// The locks, in the order in which they are taken:
//
//  1. of what a request is about: its idempotency key, its project if it books a lease without
//     reservations, the lease or the series, and its reservations by id; held until it is stored. Those of reservations that
//     move for a booking are taken later, and only if nobody has them;
//  2. the gates of all that claims time and of all decisions, left before anything is stored;
//  3. the hosts, and the project with a limit, for which time is claimed, by name; until it is stored;
//  4. reading, while the records are read;
//  5. mu, over memory, to read or enter something, never while deciding, storing or reading records.
//
// Records have their own below these. The checks of package enforcement are asked, about a decision that
// is not entered, while none of them is held except that of the idempotency key. Then the decision is made again.
//
// No request waits for any of them, except mu, longer than it lasts. A new claim enters the
// calendar before it is stored, and an old one leaves it afterwards, so that whatever happens
// in between, the calendar holds too much rather than too little.
type Service struct {
	*memory
	*Following
	*Bookings
	*Changes
	*Leases
	*Recurring
	*Waiting
	*Events
	*Promises
}

// Open returns a service with the hosts of s and the live reservations in the records. It fails
// if stored reservations contradict each other.
func Open(ctx context.Context, o Options, s *inventory.Snapshot) (*Service, error) {
	m := newMemory(o)
	f, w := newFollowing(m), newWriter(m)
	d := &decider{memory: m, Following: f, writer: w, changes: turns.New(1, 0), deciding: turns.New(max(1, o.Deciding)+1, max(1, o.Deciding))}
	leases := &Leases{decider: d}
	m.Observe(s)
	if err := f.readAll(ctx); err != nil {
		return nil, err
	}
	bookings, waiting, events := &Bookings{decider: d}, &Waiting{d}, newEvents(m, f, w)
	events.lastLook = waiting.lastLook
	return &Service{
		memory: m, Following: f, Bookings: bookings, Changes: &Changes{decider: d, leases: leases}, Leases: leases,
		Recurring: &Recurring{decider: d, used: &bookings.keys, members: leases}, Waiting: waiting,
		Events: events, Promises: &Promises{m},
	}, nil
}

// InTurn runs do when the project has its turn, as for a decision. Large answers are computed in
// this way, so that they leave a processor for other requests.
func (s *Service) InTurn(ctx context.Context, project string, do func()) error {
	if err := s.Bookings.deciding.Enter(ctx, project); err != nil {
		return err
	}
	defer s.Bookings.deciding.Leave(project)
	do()
	return nil
}

// Stale returns how often a commit was refused because the records had changed.
func (s *Service) Stale() int64 { return s.Bookings.stale.Load() }

// Expired returns how many holds this service has ended because nobody confirmed them.
func (s *Service) Expired() int64 { return s.Bookings.expired.Load() }

// BookedFromWaiting returns how many waiting reservations this service has booked.
func (s *Service) BookedFromWaiting() int64 { return s.Bookings.booked.Load() }

// Moved returns how many times this service has moved a reservation to make room for another one.
func (s *Service) Moved() int64 { return s.Bookings.moved.Load() }
