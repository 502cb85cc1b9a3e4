// SPDX-License-Identifier: Apache-2.0

package reservation

import (
	"fmt"

	"github.com/almanac-cloud/almanac/pkg/span"
)

// Constraint is the reason for a refusal.
type Constraint string

// The constraints.
const (
	HostsInPool       Constraint = "pool"            // the pool has fewer hosts than requested
	HostsMatching     Constraint = "host_properties" // fewer hosts match than requested
	HostsFree         Constraint = "free_hosts"      // enough hosts match, but too few have room at the same time
	MaxDuration       Constraint = "max_duration"    // longer than allowed
	MaxStartAhead     Constraint = "max_start_ahead" // farther ahead than allowed
	MaxHosts          Constraint = "max_hosts_per_project"
	MaxHostHours      Constraint = "max_host_hours_per_project"
	MaxHolds          Constraint = "max_holds_per_project"
	ExtensionTooEarly Constraint = "extension_window" // an extension is not accepted yet
	ImageTransfer     Constraint = "transfer"         // the image cannot be on the hosts in time
	ImagePool         Constraint = "image_pool"       // the hosts have no room for the image
	FloatingIPsFree   Constraint = "floating_ips"     // too few addresses are enrolled or free
	HostsTogether     Constraint = "together"         // enough hosts have room at the same time, but not such as the request asks for
)

// Constraints lists all constraints.
var Constraints = []Constraint{
	HostsInPool, HostsMatching, HostsFree, MaxDuration, MaxStartAhead, MaxHosts, MaxHostHours, MaxHolds, ExtensionTooEarly, ImageTransfer, ImagePool, FloatingIPsFree,
	HostsTogether,
}

// Block is a time during which another reservation holds a host.
type Block struct {
	Host string
	Span span.Span
}

// Refusal is the answer to a valid request that has no room. It implements error.
type Refusal struct {
	Constraint Constraint
	// Message is a sentence for the user.
	Message string
	// Matched is the number of hosts of the pool that pass the filter.
	Matched int
	// Free is the number of hosts (for kind instance: of instances) for which there is room at the
	// earliest requested start.
	Free int
	// Wanted is the requested time from the earliest start on.
	Wanted span.Span
	// BlockedBy lists the claims on matching hosts that overlap Wanted, at most MaxBlocks, sorted by
	// host and start. If an active reservation cannot be extended on its own hosts, it lists the
	// claims on these hosts. It is empty if a limit is exceeded, and if the hosts would not hold the
	// request then even without the reservations with these claims.
	BlockedBy []Block
	// EarliestStart is the first time from which the same request would be accepted; 0 means that
	// there is none.
	EarliestStart span.Instant
	// LargestQuantity is the largest quantity that would be accepted in the requested window.
	LargestQuantity int
	// LatestEnd is the latest end with which the extension of a reservation would be accepted; 0 if
	// no later end than the present one would be, and for other requests.
	LatestEnd span.Instant
	// Occurrences are those of a series that are refused, at most MaxRefused, by their times. The rest of the refusal is about
	// the first of them.
	Occurrences []RefusedOccurrence
}

// MaxBlocks is the maximum length of Refusal.BlockedBy.
const MaxBlocks = 100

// MaxRefused is the maximum length of Refusal.Occurrences.
const MaxRefused = 100

func (r *Refusal) Error() string {
	return fmt.Sprintf("refused by %s: %s", r.Constraint, r.Message)
}
