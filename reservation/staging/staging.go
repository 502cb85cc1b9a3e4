// SPDX-License-Identifier: Apache-2.0

// Package staging plans how the images of reservations reach their hosts in time (paper 000, "File
// staging strategies" and "Reusing VM images"). It schedules the transfers from the repositories to
// the hosts, computes which images the pool of a host will contain and when, and refuses demands
// whose images cannot arrive in time. A pool is the images on one host. The package identifies
// hosts by name and images by id; it never changes its arguments.
package staging

import (
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Strategy is the order and time of transfers with a deadline.
type Strategy string

// The strategies.
const (
	EDF Strategy = "edf" // earliest deadline first, each as early as possible
	JIT Strategy = "jit" // just in time: in the same order, each as late as possible
)

// Strategies lists all strategies.
var Strategies = []Strategy{EDF, JIT}

// Image is what a transfer copies.
type Image struct {
	ID   string
	Size int64 // bytes
	// Repositories names the repositories that have the image; an empty list means all.
	Repositories []string
}

// Repository is a source of images, which sends one image at a time.
type Repository struct {
	Name string
	Rate float64 // bytes a second; 0 takes no time
}

// Site is the repositories, links and pools that transfers use. One repository without limits is
// the single channel of the paper.
type Site struct {
	Strategy     Strategy
	Repositories []Repository // at least one
	// Links is the most that a node receives, in bytes a second, by the name of the node. A node
	// with a limit receives one image at a time. A node without an entry has no limit.
	Links map[string]float64
	// Limit is the largest total size, in bytes, of the images in the pool of a node; 0 means no
	// limit. An image occupies its space from the start of its transfer on.
	Limit int64
	// Margin is the number of seconds before its deadline at which a transfer must have ended.
	Margin int64
	// Lifetime is for how many seconds an image certainly stays on a node after its arrival or its
	// last use. A transfer begins at most this long before its deadline. 0 means that an image
	// stays as long as it is promised, as in the pools of the paper.
	Lifetime int64
}

// Transfer is a copy of an image to a node, planned or under way. One transfer serves all demands
// that need the image there from its deadline on.
type Transfer struct {
	ID         string
	Image      Image
	Node       string
	Repository string // empty until the transfer is scheduled
	// Seconds is the duration; 0 until the transfer is scheduled, unless the duration is known
	// before.
	Seconds  int64
	Deadline span.Instant // it must have ended by then
	Entered  int64        // orders transfers with the same deadline
	// Started is true if the transfer is under way: it is not preempted, and its Start and End do
	// not change.
	Started    bool
	Start, End span.Instant
	// Expire is how long the image then stays in the pool: until the latest end of the demands that
	// use it, plus the lifetime of the site.
	Expire span.Instant
}

// Entry is an image that is in the pool of a node between From and Expire.
type Entry struct {
	Image        Image
	From, Expire span.Instant
	// Lasting is true if the node never removes the image: Expire is Forever. It then occupies space
	// only during Promised, from the start of the first demand that uses it to the end of the last.
	Lasting  bool
	Promised span.Span
}

// State is the transfers that have not ended and the contents of the pools, by node, at an instant.
// A transfer that has not started has no times: Schedule computes them from everything that is
// known at that moment.
type State struct {
	At span.Instant
	// Ages is true if images expire some time after their last use, as with the Lifetime of a site;
	// a transfer then serves only until it expires.
	Ages      bool
	Transfers []Transfer
	Pools     map[string][]Entry
}

// Demand asks for an image on nodes during a span.
type Demand struct {
	ID    string // of the reservation; names its transfers
	Image Image
	Nodes []string
	Span  span.Span
	// Joining is true if the reservation received the nodes after it had begun: the image is late
	// there in any case, and is transferred nevertheless.
	Joining bool
}

// Reason is the kind of obstacle for which a demand is refused.
type Reason string

// The reasons.
const (
	NoTransfer Reason = "transfer" // an image cannot be there in time
	NoPool     Reason = "pool"     // a pool would have more than its limit
)

// Refusal is the error for a demand that cannot be met.
type Refusal struct {
	Reason  Reason
	Node    string
	Message string // a sentence for the user
	// Earliest is the first start at which the images would allow the demand; 0 if none is known.
	Earliest span.Instant
}

func (r *Refusal) Error() string { return r.Message }
