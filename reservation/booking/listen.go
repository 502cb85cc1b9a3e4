// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"hash/fnv"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/planning"
)

// Learned is a stored change of a reservation that a service learns of. A service that is far behind
// may skip versions.
type Learned struct {
	// Before is nil for a reservation that the service did not have, After for one that is no longer
	// stored.
	Before, After *reservation.Reservation
	// Followed is what FollowedUntil returns now.
	Followed span.Instant
}

// Listener is called with each change that a service learns of, its own and those of other replicas.
// It must not block, call the service, or change the reservations.
type Listener func(Learned)

// Listen makes the service call l from now on. It replaces the previous listener.
func (d *Service) Listen(l Listener) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.listener = l
}

// tell tells the listener that the stored state of a reservation is now after. e is its entry with
// the state before; nil if it has none. The caller holds mu.
func (d *Service) tell(e *entry, after *reservation.Reservation) {
	if d.listener == nil {
		return
	}
	var before *reservation.Reservation
	switch {
	case e == nil:
	case e.attempt == nil:
		before = new(e.r)
	case e.attempt.before.ID != "":
		before = new(e.attempt.before)
	}
	d.listener(Learned{before, after, d.followed})
}

// FollowedUntil returns an instant such that the service has learned of everything that was stored
// before.
func (d *Service) FollowedUntil() span.Instant {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.followed
}

// Fingerprint returns a number that identifies the live reservations with their versions. It is the
// same in all replicas that have the same ones.
func (d *Service) Fingerprint() uint64 { return d.state().marks }

// LiveMarked returns Live with the Fingerprint of the same moment.
func (d *Service) LiveMarked(w span.Span) ([]reservation.Reservation, uint64) {
	s := d.state()
	return s.overlapping(w), s.marks
}

// markOf returns the part of a reservation in the Fingerprint, which is the sum of these parts: so it
// takes the same time however many there are.
func markOf(r *reservation.Reservation) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.ID + "/" + strconv.FormatInt(r.Version, 10))) // always succeeds
	return h.Sum64()
}

// Use is what a project's live reservations hold now. An instance counts as one host.
type Use struct {
	Reservations int
	HostsNow     int
	MostHosts    int // at one instant, from now on
	HostSeconds  int64
}

// Use returns the limits, and what a project uses of them.
func (d *Service) Use(project string) (planning.Limits, Use) {
	d.mu.RLock()
	held, limits := d.held[project], d.options.Limits
	d.mu.RUnlock()
	now := d.options.Now()
	u := Use{
		HostsNow: held.Hosts.At(now), MostHosts: held.Hosts.Most(span.Span{Start: now, End: span.Forever}), HostSeconds: held.HostSeconds,
	}
	for r := range d.state().live.byStart.until(span.Forever) {
		if r.BelongsTo(project) && !r.Maintenance {
			u.Reservations++
		}
	}
	return limits, u
}
