// Package staging has the images of reservations on their hosts in time (paper 000,
// "File staging strategies" and "Reusing VM images"): it schedules the transfers from the
// repository to the hosts, says which images a host's pool will have when, and refuses
// what cannot be there. It knows hosts by name, images by id, and spans; it changes no
// value that it is given.
package staging

import (
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Strategy says when transfers with a deadline are carried out.
type Strategy string

// The strategies.
const (
	EDF Strategy = "edf" // earliest deadline first, each as soon as it can be
	JIT Strategy = "jit" // in the same order, each as late as it may be
)

// Strategies are all of them.
var Strategies = []Strategy{EDF, JIT}

// Image is what is transferred.
type Image struct {
	ID   string
	Size int64 // bytes
	// Repositories name those that have it; none is all.
	Repositories []string
}

// Repository is where images come from: a channel through which one goes at a time.
type Repository struct {
	Name string
	Rate float64 // bytes a second; 0 takes no time
}

// Site is what transfers go through. One repository and no limits are the single channel
// of the paper.
type Site struct {
	Strategy     Strategy
	Repositories []Repository // at least one
	// Links bound what a node takes, in bytes a second, by node; a node that has a limit
	// takes one image at a time. A node that is absent takes whatever comes.
	Links map[string]float64
	// Limit bounds the images in the pool of each node together, in bytes; 0 is no bound.
	// An image takes its space from the start of its transfer on.
	Limit int64
	// Margin is how many seconds before its deadline a transfer is to end.
	Margin int64
	// Lifetime is for how many seconds an image is sure to stay on a node after it has come
	// or was used last: a transfer begins no earlier than that before its deadline. 0 is for
	// as long as it is promised, as in the pools of the paper.
	Lifetime int64
}

// Transfer is an image on its way to a node, or to be. One serves all that need the image
// there from its deadline on.
type Transfer struct {
	ID         string
	Image      Image
	Node       string
	Repository string // empty until it is scheduled
	// Seconds is how long it takes; 0 until it is scheduled, unless it is known.
	Seconds  int64
	Deadline span.Instant // it must have ended by then
	Entered  int64        // its turn among those with the same deadline
	// Started says that it is under way: it is not pre-empted, and Start and End stay.
	Started    bool
	Start, End span.Instant
	// Expire is until when the image stays in the pool then: the latest end of its users,
	// and the lifetime of the site after it.
	Expire span.Instant
}

// Entry is an image in the pool of a node, from From until Expire.
type Entry struct {
	Image        Image
	From, Expire span.Instant
}

// State is what staging knows at an instant: the transfers that are not over, and what is
// in the pools, by node. Those that have not started are not scheduled: Schedule says when
// they will be, by all that is known then.
type State struct {
	At span.Instant
	// Ages says that images go some time after nobody needs them any more, as by the
	// lifetime of a site: then a transfer serves only until it expires.
	Ages      bool
	Transfers []Transfer
	Pools     map[string][]Entry
}

// Demand asks for an image on nodes during a span.
type Demand struct {
	ID    string // of who asks; names its transfers
	Image Image
	Nodes []string
	Span  span.Span
	// Joining says that the nodes were given when who asks had begun: the image is late
	// there in any case, and is sent all the same.
	Joining bool
}

// Reason says why a demand cannot be met.
type Reason string

// The reasons.
const (
	NoTransfer Reason = "transfer" // an image cannot be there in time
	NoPool     Reason = "pool"     // a pool would have more than its limit
)

// Refusal is a demand that cannot be met; it is an error.
type Refusal struct {
	Reason  Reason
	Node    string
	Message string // a sentence for the user
	// Earliest is the first start at which the demand would be accepted, if nothing but
	// images stands in the way; 0 where none is known.
	Earliest span.Instant
}

func (r *Refusal) Error() string { return r.Message }
