// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"context"
	"time"

	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/precondition"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/enforcement"
	"github.com/almanac-cloud/almanac/reservation/planning"
	"github.com/almanac-cloud/almanac/reservation/staging"
	"github.com/almanac-cloud/almanac/reservation/tariff"
)

// Caller is the user who makes a request.
type Caller struct {
	ProjectID, UserID string
	// RequestID is the id of the API request, for the audit trail.
	RequestID string
	// Admin is true if the caller may use the reservations of every project.
	Admin bool
	// SeesHidden is true if the caller may use hidden properties in filters.
	SeesHidden bool
	// Expected are the versions of the reservation or the lease that the caller's change is for. If it has another one
	// when the change is decided on, that fails with a Precondition fault.
	Expected precondition.Versions
}

// expects fails with a Precondition fault if the caller expects another version.
func (c Caller) expects(what, version string) error {
	if c.Expected.Met(version) {
		return nil
	}
	return fault.Changed(what)
}

// may reports whether the caller may see and change the reservation.
func (c Caller) may(r *reservation.Reservation) bool { return c.Admin || r.BelongsTo(c.ProjectID) }

// Options configure a Service.
type Options struct {
	Records  Records
	Keys     Keys
	Reader   Reader
	Limits   planning.Limits
	Defaults planning.Defaults
	LeadTime int64 // seconds before a start within which its hosts should be empty
	// AnswersHold is for how many seconds the starts and quantities that answers name can be requested, if nobody else books.
	AnswersHold int64
	// Migrates is true if the instances of others are migrated off reserved hosts.
	Migrates bool
	// Images returns the current facts about images, which are immutable. If it is nil or
	// returns nil, decisions ignore images.
	Images func() *staging.Facts
	// Tariff returns what hosts cost by time, which is immutable. If it is nil or returns nil, that is
	// not known.
	Tariff func() *tariff.Reading
	// FellBack is called for each stored booking whose start first fit has chosen instead of the
	// tariff; nil means that nobody is told.
	FellBack func(ctx context.Context, r *reservation.Reservation, why planning.Fallback)
	// Enforcement makes the checks that must allow a booking or a change; nil means that there are
	// none.
	Enforcement *enforcement.Checker
	// Cloud carries out events in the cloud; nil means that there is no cloud.
	Cloud Cloud
	// Addresses reads the pool of floating IPs; nil means that there is none. Networks carries out the
	// events of floating IPs in the cloud.
	Addresses Addresses
	Networks  Cloud
	// Replica is the name of this replica among those that share the records.
	Replica string
	// Parallel is the number of events that are carried out concurrently, for which CarryOut does
	// not wait. 0 means that CarryOut carries them out itself, one after the other.
	Parallel int
	// Deciding is the number of decisions of one project that are made concurrently, each on one
	// processor; 0 means one. One more may be made for another project, so that no project waits
	// for the long decisions of a single one.
	Deciding int
	// Announce informs the other replicas that something was stored. It must not block; nil means
	// that nobody is informed.
	Announce func()
	Now      func() span.Instant
	// Elapsed is the time since some moment, on a monotonic clock; nil uses Now.
	Elapsed func() time.Duration
	NewID   func() string
}
