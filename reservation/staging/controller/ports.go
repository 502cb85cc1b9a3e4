// Package controller has the images of reservations put on their hosts in time: it reads
// what is, asks package staging what is due, stores what will be done, and only then asks
// the cloud. One process at a time does so, under a lease whose epoch goes with every
// write; all processes know what is stored, and decide about reservations with it.
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

// The outcomes; a transfer under way has none.
const (
	There   Outcome = "there"   // the cloud says that the host has the image
	Assumed Outcome = "assumed" // its time is over, and nobody listens to what the cloud says
	Failed  Outcome = "failed"
	// Undone is no fault of the host: the cloud could not be asked, or said nothing of a
	// whole call. It is tried again for as long as there is time.
	Undone Outcome = "undone"
)

// Outcomes are all of them.
var Outcomes = []Outcome{There, Assumed, Failed, Undone}

// Transfer is an image that the cloud was asked to put on a host.
type Transfer struct {
	ID   string
	Call string // names the call to the cloud that it is part of: req- and a UUID
	// Image is its id in Glance, and Bytes its size.
	Image, Host string
	Bytes       int64
	// Reservations are the ids of those that it is for.
	Reservations []string
	// Deadline, Expected and Expire are those of staging.Transfer's Deadline, End and Expire
	// as they were at the start; Bound is when it has failed unless the cloud says something
	// before. Begun is when the host's turn came, which is later than Started where the call
	// has several hosts; it is set when the transfer ends. Of one that is Undone, Started is when
	// that was so first, and Finished when last.
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
	// LastUsed is when the cloud was last known to use it or to be asked for it.
	LastUsed span.Instant
}

// Image is what is remembered of an image.
type Image struct {
	ID, Name string
	Bytes    int64
	Looked   span.Instant // when Glance was last asked about it
	Gone     bool         // Glance has it no more
}

// Stored is all that is stored.
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
	// Forgotten are images that hosts have no more, by Image and Host. ForgetImages are ids
	// of images that nobody asks for any more, and ForgetBefore has transfers go that
	// finished before it; 0 has none go.
	Forgotten    []Cached
	ForgetImages []string
	ForgetBefore span.Instant
}

// Empty says that there is nothing to store.
func (c *Change) Empty() bool {
	return len(c.Images)+len(c.Transfers)+len(c.Cached)+len(c.Forgotten)+len(c.ForgetImages) == 0 && c.ForgetBefore == 0
}

// Records keep what must not be forgotten.
type Records interface {
	// StagedImages gives what matters now of what is stored, as it stood at one moment: all
	// but the transfers that have ended. Of these it gives those of calls under way, those
	// that failed or are Undone and that somebody may still wait for by Expire, and the last
	// by which the rate is measured.
	StagedImages(ctx context.Context, now span.Instant) (Stored, error)
	// ChangeStagedImages stores a change whole or not at all, under the lease; the zero
	// lease guards nothing.
	ChangeStagedImages(ctx context.Context, lease job.Lease, c Change) error
}

// Cloud puts images on hosts.
type Cloud interface {
	// Cache asks for an image on hosts, one after the other in their order as far as the
	// cloud keeps to it, and returns before that is done. asked says that the cloud may have
	// been asked; where it is false, nothing will come of it. Hosts that it cannot have are
	// left out of the call: then the error is, or wraps, a *LeftOut.
	Cache(ctx context.Context, call, image string, hosts []string) (asked bool, err error)
	// Clear takes back what calls that were broken off have left on the cloud.
	Clear(ctx context.Context) error
}

// LeftOut is the error of a call that was, or would have been, for the other hosts alone.
type LeftOut struct {
	Hosts map[string]error // and why
}

func (l *LeftOut) Error() string {
	host := slices.Min(slices.Collect(maps.Keys(l.Hosts)))
	return fmt.Sprintf("%d hosts are left out, %s among them: %v", len(l.Hosts), host, l.Hosts[host])
}

// Glance tells of images.
type Glance interface {
	// IsID says that a text may be the id of an image. What is none was kept with a
	// reservation before images were looked up, and is left alone.
	IsID(text string) bool
	// Find gives the image that a user of a project means by an id or a name. Its faults
	// are Invalid on field image, or Unavailable; ErrNoGlance is that there is no Glance.
	Find(ctx context.Context, text, project string) (Image, error)
	// Look gives an image by its id; gone is that there is none.
	Look(ctx context.Context, id string) (i Image, gone bool, err error)
}

// Promises are the reservations.
type Promises interface {
	Live(w span.Span) []reservation.Reservation
	// Remark enters a sentence about its images in the log of a reservation that has not
	// begun; once, where it is the last one already.
	Remark(ctx context.Context, id, sentence string) (changed bool, err error)
}

// Hosts are those of the inventory.
type Hosts interface {
	Snapshot() *inventory.Snapshot
	Untrusted(now span.Instant) string
}
