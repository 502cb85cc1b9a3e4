package reservation

import (
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Constraint names what stood in the way of a request.
type Constraint string

// The constraints.
const (
	HostsInPool       Constraint = "pool"            // fewer hosts in the pool than asked for
	HostsMatching     Constraint = "host_properties" // fewer hosts match than asked for
	HostsFree         Constraint = "free_hosts"      // enough hosts match, too few have room together
	MaxDuration       Constraint = "max_duration"    // longer than allowed
	MaxStartAhead     Constraint = "max_start_ahead" // farther ahead than allowed
	MaxHosts          Constraint = "max_hosts_per_project"
	MaxHostHours      Constraint = "max_host_hours_per_project"
	ExtensionTooEarly Constraint = "extension_window" // an extension is not accepted yet
	ImageTransfer     Constraint = "transfer"         // its image could not be on the hosts in time
	ImagePool         Constraint = "image_pool"       // the hosts have no room for its image
)

// Block is a time in which a host is held by others.
type Block struct {
	Host string
	Span span.Span
}

// Refusal says why a request cannot be met, and what could be.
type Refusal struct {
	Constraint Constraint
	// Message is a sentence for the user.
	Message string
	// Matched counts the hosts in the pool that pass the filter.
	Matched int
	// Free counts the hosts (for kind instance: the instances) that would have
	// room at the earliest asked start.
	Free int
	// BlockedBy has the claims on matching hosts that overlap the earliest asked
	// start and duration, at most MaxBlocks of them, by host and start; of a change
	// that an active reservation's own hosts stand in the way of, the claims on those.
	// Where a limit stands in the way there are none.
	BlockedBy []Block
	// EarliestStart is the first time at which the same request would be accepted
	// with a window from there on; 0 where there is none.
	EarliestStart span.Instant
	// LargestQuantity is the most that would be accepted in the asked window.
	LargestQuantity int
}

// MaxBlocks bounds the claims that a Refusal lists.
const MaxBlocks = 100

func (r *Refusal) Error() string {
	return fmt.Sprintf("refused by %s: %s", r.Constraint, r.Message)
}
