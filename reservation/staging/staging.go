// Package staging brings the images of reservations to their hosts in time (paper 000, "File
// staging strategies" and "Reusing VM images"). It schedules the transfers from the repository to
// the hosts, computes which images a host's pool will have and when, and refuses what cannot arrive
// in time. It knows hosts by name, images by id, and spans; it never changes its arguments.
package staging

import (
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Strategy is when transfers with a deadline run.
type Strategy string

// The strategies.
const (
	EDF Strategy = "edf" // earliest deadline first, each as early as possible
	JIT Strategy = "jit" // just in time: in the same order, each as late as possible
)

// Strategies are all strategies.
var Strategies = []Strategy{EDF, JIT}

// Image is what a transfer copies.
type Image struct {
	ID   string
	Size int64 // bytes
	// Repositories names the repositories that have it; an empty list is all of them.
	Repositories []string
}

// Repository is a source of images: a channel for one transfer at a time.
type Repository struct {
	Name string
	Rate float64 // bytes a second; 0 takes no time
}

// Site is what transfers go through. One repository without limits is the single channel of the
// paper.
type Site struct {
	Strategy     Strategy
	Repositories []Repository // at least one
	// Links bounds what a node receives, in bytes a second, by node. A node with a limit receives
	// one image at a time. An absent node has no limit.
	Links map[string]float64
	// Limit bounds the images in the pool of each node together, in bytes; 0 is no bound. An image
	// takes its space from the start of its transfer on.
	Limit int64
	// Margin is how many seconds before its deadline a transfer must end.
	Margin int64
	// Lifetime is for how many seconds an image is sure to stay on a node after its arrival or last
	// use: a transfer begins no earlier than that before its deadline. With 0 an image stays for as
	// long as it is promised, as in the pools of the paper.
	Lifetime int64
}

// Transfer is a copy of an image to a node, planned or under way. One transfer serves all that need
// the image there from its deadline on.
type Transfer struct {
	ID         string
	Image      Image
	Node       string
	Repository string // empty until the transfer is scheduled
	// Seconds is how long it takes; 0 until it is scheduled, unless the duration is already known.
	Seconds  int64
	Deadline span.Instant // it must have ended by then
	Entered  int64        // orders transfers with the same deadline
	// Started reports whether it is under way: it is not preempted, and Start and End stay.
	Started    bool
	Start, End span.Instant
	// Expire is until when the image then stays in the pool: the latest end of its users, plus the
	// lifetime of the site.
	Expire span.Instant
}

// Entry is an image in the pool of a node, from From until Expire.
type Entry struct {
	Image        Image
	From, Expire span.Instant
}

// State is what staging knows at an instant: the transfers that have not ended, and the contents of
// the pools, by node. A transfer that has not started has no times yet: Schedule computes them from
// everything known at that moment.
type State struct {
	At span.Instant
	// Ages reports whether images expire some time after their last use, as with the lifetime of a
	// site: then a transfer serves only until it expires.
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
	// Joining reports whether the reservation received the nodes after it had begun: the image is
	// late there in any case, and is still sent.
	Joining bool
}

// Reason is why a demand cannot be met.
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
	// Earliest is the first start at which the demand would be accepted if only images stood in the
	// way; 0 where none is known.
	Earliest span.Instant
}

func (r *Refusal) Error() string { return r.Message }
