// SPDX-License-Identifier: Apache-2.0

package booking

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/almanac-cloud/almanac/reservation"
	"github.com/almanac-cloud/almanac/reservation/address"
)

// Records stores reservations durably, for any number of services.
type Records interface {
	// Commit stores a change completely or not at all, with all its reservations and its lease. It
	// fails with reservation.ErrStale if the versions in the records differ from those on which the
	// decision is based, and with reservation.ErrKeyUsed if the project has used the key before. After
	// any other error it is unknown whether the change was stored.
	Commit(ctx context.Context, c Commit) error
	Recaller
}

// Recaller reads stored reservations.
type Recaller interface {
	// Recall returns what q selects, as it was at one moment.
	Recall(ctx context.Context, q Recall) (Recalled, error)
}

// Stored returns those of the reservations that are stored, live or over.
func Stored(ctx context.Context, records Recaller, ids []string) ([]reservation.Reservation, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	known, err := records.Recall(ctx, Recall{Since: math.MaxInt64, IDs: ids})
	// Recall adds the live reservations on the same hosts.
	return slices.DeleteFunc(known.Reservations, func(r reservation.Reservation) bool { return !slices.Contains(ids, r.ID) }), err
}

// Commit is a change of one reservation, of the reservations of one lease together, or several new
// reservations of one project, with the versions on which it was decided.
type Commit struct {
	// Revisions lists the new states of reservations, at most one of each. They are of one project, apart from those
	// that move so that the first has room.
	Revisions []Revision
	// Lease is the new state of the lease; nil means that the lease itself does not change. The
	// records contain the previous Version; Version 1 means a new lease.
	Lease *reservation.Lease
	// Series is the new series to which the reservations belong; nil if there is none.
	Series *reservation.Series
	// Key is the use of the idempotency key for a new reservation; nil means that there was no key.
	Key *reservation.Key
	// Hosts are the hosts on which the change claims additional time, sorted by name, with the
	// versions on which it was decided. Commit increases each version by one. One name, which no
	// host has, stands for the images of all reservations.
	Hosts []HostVersion
	// Usage is that of the project of the first revision, Others are those of other projects whose reservations move.
	Usage  Usage
	Others []ProjectUsage
}

// Usages returns the usage of each project of the commit, sorted by name; none for a lease without reservations.
func (c Commit) Usages() []ProjectUsage {
	if len(c.Revisions) == 0 {
		return nil
	}
	all := append([]ProjectUsage{{c.Revisions[0].Reservation.ProjectID, c.Usage}}, c.Others...)
	slices.SortFunc(all, func(a, b ProjectUsage) int { return cmp.Compare(a.Project, b.Project) })
	return all
}

// ProjectUsage is by how much a commit changes what another project holds.
type ProjectUsage struct {
	Project string
	Usage
}

// Revision is a new state of a reservation, with its cause. The records contain the previous
// Version; Version 1 means a new reservation.
type Revision struct {
	Reservation reservation.Reservation
	Cause       reservation.Cause
	// Released are the claims that the reservation held until now and does not contain any more.
	Released []reservation.Claim
}

// HostVersion is the number of commits that claimed time on a host.
type HostVersion struct {
	Host    string
	Version int64
}

// ProjectVersion is the number of commits with Usage.Raises of a project.
type ProjectVersion struct {
	Project string
	Version int64
}

// Usage is by how much a commit changes what its project holds.
type Usage struct {
	// Hosts and HostSeconds are added to the sums over the live reservations; they may be
	// negative. The sum of the hosts is read only by the previous version of Almanac, whose
	// limit applies to it.
	Hosts       int
	HostSeconds int64
	// MostHostSeconds is the largest allowed sum if HostSeconds raises it; 0 means no limit.
	MostHostSeconds int64
	// Raises is true if the project holds more hosts at some instant than before. Commit then
	// increases the version of the project by one.
	Raises bool
	// Known is the version of the project on which the change was decided; nil allows any. It is
	// set only if Raises is true.
	Known *int64
}

// Recall selects stored state. The answer always includes the log. All overrides the other
// fields.
type Recall struct {
	// Since is a place in the log; the answer contains the entries after it.
	Since int64
	// All selects all live reservations and all hosts, in addition to IDs.
	All bool
	// IDs selects reservations, Hosts the live reservations with claims on these hosts, and
	// Project, unless it is empty, the live reservations of the project.
	IDs, Hosts []string
	Project    string
	// Projects returns the version of a project that the caller has. A nil function means that the
	// answer contains no versions of projects.
	Projects func(project string) int64
	// Known returns the version of a reservation that the caller has, or 0. The answer leaves out
	// reservations that the caller has in this version. A nil function means that the caller has
	// none.
	Known func(id string) int64
}

// Recalled is stored state as of one moment.
type Recalled struct {
	// Log contains the entries after Since, in order; with All, only the last entry.
	Log []LogEntry
	// Reservations are those in the log or selected by the query, live or over, unless the caller
	// has them in their version.
	Reservations []reservation.Reservation
	// Gone are the IDs for which nothing is stored.
	Gone []string
	// Hosts contains the versions of the selected hosts, and of the hosts of reservations that the
	// log or IDs name. For these hosts, Reservations contains every live reservation that the
	// caller does not have.
	Hosts []HostVersion
	// Projects has, if the query has Projects, the versions of Project, of the projects of
	// all Reservations, and for All of every project, by name, if the caller has an older
	// version. For these projects, Reservations has every live reservation that the caller
	// does not have.
	Projects []ProjectVersion
}

// LogEntry states that a version of a reservation was stored. Places increase, but an entry may
// become visible after one with a larger place, and there may be gaps.
type LogEntry struct {
	Place   int64
	ID      string
	Version int64
}

// Reader reads stored reservations, leases and series.
type Reader interface {
	reservation.Reader
	reservation.LeaseReader
	reservation.SeriesReader
}

// Keys reads idempotency keys.
type Keys interface {
	// Key returns the use of a key by a project; ok is false if it was not used.
	Key(ctx context.Context, projectID, key string) (use reservation.Key, ok bool, err error)
}

// Addresses reads the pool of floating IPs.
type Addresses interface {
	// Pool returns the addresses of a network, with the claims of live reservations and the version
	// at the same moment. A network without addresses is an empty pool.
	Pool(ctx context.Context, network string) (address.Pool, error)
}

// Cloud carries out events in the cloud.
type Cloud interface {
	// Carry does the work of an event. It may be called again for the same event, also by another
	// replica after the first one has stopped. Owners read the message of its fault, which must not
	// contain host names before the start; the fault's cause is for the audit trail and the log.
	Carry(ctx context.Context, r reservation.Reservation, event reservation.EventType) error
}
