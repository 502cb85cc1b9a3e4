// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"hash/fnv"
	"strconv"

	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
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

// tell tells the listener that the stored state of a reservation is now after. e is its entry with
// the state before; nil if it has none. The caller holds mu.
func (m *memory) tell(e *entry, after *reservation.Reservation) {
	if m.listener == nil {
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
	m.listener(Learned{before, after, m.followed})
}

// markOf returns the part of a reservation in the Fingerprint, which is the sum of these parts: so it
// takes the same time however many there are.
func markOf(r *reservation.Reservation) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(r.ID + "/" + strconv.FormatInt(r.Version, 10))) // always succeeds
	return h.Sum64()
}
