// SPDX-License-Identifier: Apache-2.0

// Package controller puts the images of reservations on their hosts in time: it observes,
// determines with package staging which transfers are due, stores what it will do, and only then
// calls the cloud. One replica at a time does so, under a lease whose epoch accompanies every
// write. All replicas read the stored records, and use them in decisions about reservations.
package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/job"
	"github.com/almanac-cloud/almanac/pkg/span"
	"github.com/almanac-cloud/almanac/reservation"
)

// Outcome is how a transfer has ended.
type Outcome string

// The outcomes. A transfer under way has an empty one.
const (
	TransferThere   Outcome = "there"   // the cloud reported that the host has the image
	TransferKept    Outcome = "kept"    // the same, and the host had it before: it keeps it for longer
	TransferAssumed Outcome = "assumed" // its time is over, and nobody listens to the cloud's reports
	TransferFailed  Outcome = "failed"
	// TransferLost is not the fault of the host: the call did not reach the cloud, or the cloud
	// reported about no host of the call. Almanac retries the transfer as long as there is time.
	TransferLost Outcome = "lost"
)

// Outcomes lists all outcomes.
var Outcomes = []Outcome{TransferThere, TransferKept, TransferAssumed, TransferFailed, TransferLost}

// Transfer is a request to the cloud to put an image on a host.
type Transfer struct {
	ID   string
	Call string // names its call to the cloud: req- and a UUID
	// Image is the id of the image in Glance, Host the name of the host.
	Image, Host string
	Bytes       int64
	// Reservations are the ids of the reservations that need the transfer.
	Reservations []string
	// Deadline, Expected and Expire are the Deadline, End and Expire of the staging.Transfer when
	// it was started. Bound is when it fails unless the cloud has reported about it. Begun is when
	// the host began to fetch the image, which is later than Started if the call has several hosts;
	// it is set when the transfer ends. For a lost transfer, Started is when it first failed to
	// reach the cloud, and Finished when it last did.
	Deadline, Started, Expected, Bound, Expire span.Instant
	Begun, Finished                            span.Instant
	Outcome                                    Outcome
	Detail                                     string // why it failed, in a sentence
}

// Cached is an image in the cache of a host.
type Cached struct {
	Image, Host string
	Bytes       int64
	Since       span.Instant
	// LastUsed is when the cloud was last known to use the image, or was last requested to cache
	// it.
	LastUsed span.Instant
}

// Image is the record of an image in Glance.
type Image struct {
	ID, Name string
	Bytes    int64
	Looked   span.Instant // when Glance was last asked about it
	Gone     bool         // Glance no longer has it
}

// Stored contains all stored records.
type Stored struct {
	Images    []Image    // by ID
	Transfers []Transfer // by Started and ID
	Cached    []Cached   // by Image and Host
}

// Change is what a step stores; rows with the same key are replaced.
type Change struct {
	Images    []Image
	Transfers []Transfer
	Cached    []Cached
	// Forgotten are images that hosts no longer have, identified by Image and Host. ForgetImages
	// are the ids of images that nothing uses any more. ForgetBefore deletes the transfers that
	// finished before it; 0 deletes none.
	Forgotten    []Cached
	ForgetImages []string
	ForgetBefore span.Instant
}

// Empty reports whether the change stores nothing.
func (c *Change) Empty() bool {
	return len(c.Images)+len(c.Transfers)+len(c.Cached)+len(c.Forgotten)+len(c.ForgetImages) == 0 && c.ForgetBefore == 0
}

// Records stores what must survive a restart.
type Records interface {
	// StagedImages returns the records that matter now, read in one transaction. Of the transfers
	// that have ended it returns only those of calls under way, the failed or lost ones for which a
	// reservation may still wait (Expire), and the last ones from which the rate is measured.
	StagedImages(ctx context.Context, now span.Instant) (Stored, error)
	// ChangeStagedImages stores a change atomically, under the lease; the zero lease means without
	// a lease.
	ChangeStagedImages(ctx context.Context, lease job.Lease, c Change) error
}

// ImageCache puts images on hosts.
type ImageCache interface {
	// Cache requests an image on hosts and returns before they have it. The hosts fetch it one
	// after the other in their order, as far as the cloud observes that. asked is false if the
	// request certainly did not reach the cloud. Hosts that cannot take part are left out of the
	// call; the error is, or wraps, a *LeftOut then.
	Cache(ctx context.Context, call, image string, hosts []string) (asked bool, err error)
	// Clear removes what interrupted calls have left in the cloud.
	Clear(ctx context.Context) error
}

// LeftOut is the error of a call that some hosts were left out of; the other hosts are in the call.
type LeftOut struct {
	Hosts map[string]error // with the reason
}

func (l *LeftOut) Error() string {
	host := slices.Min(slices.Collect(maps.Keys(l.Hosts)))
	return fmt.Sprintf("%d hosts were skipped, %s among them: %v", len(l.Hosts), host, l.Hosts[host])
}

// Glance reads images.
type Glance interface {
	// IsID reports whether a text has the form of an image's id. Reservations may have other texts,
	// stored before images were resolved; these are ignored.
	IsID(text string) bool
	// Find returns the image that a user of a project means by an id or a name. Its faults are
	// Invalid with the field image, or Unavailable; without Glance the error is ErrNoGlance.
	Find(ctx context.Context, text, project string) (Image, error)
	// Look returns an image by its id; gone is true if it does not exist.
	Look(ctx context.Context, id string) (i Image, gone bool, err error)
}

// Promises is the reservations.
type Promises interface {
	Live(w span.Span) []reservation.Reservation
	// Remark adds a sentence about its image to the log of a reservation that has not begun. It
	// does nothing if this sentence is already the last one about its image; changed is false then.
	Remark(ctx context.Context, id, sentence string) (changed bool, err error)
}

// Hosts is the inventory.
type Hosts interface {
	Snapshot() *inventory.Snapshot
	Untrusted(now span.Instant) string
}
