// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"fmt"
	"slices"
)

// Kind is what is wrong with a part of Blazar's database, or worth to know about it.
type Kind string

// The kinds. Those in Refused stop the takeover unless the operator chooses to leave what they are
// about.
const (
	DoubleBooked Kind = "double-booked" // the claims of two leases do not fit beside each other
	UnknownHost  Kind = "unknown-host"  // a lease has a host that Almanac's inventory lacks
	Unsupported  Kind = "unsupported"   // a reservation of a type that Almanac lacks
	InError      Kind = "error"         // Blazar failed to start, end or change a lease
	Unfinished   Kind = "unfinished"    // Blazar stopped while it made or deleted a lease
	Unreadable   Kind = "unreadable"    // rows that contradict each other

	Filter   Kind = "filter"   // a query that Almanac cannot translate
	Size     Kind = "size"     // Placement has less of a host than Blazar has promised, or other sizes
	HostLeft Kind = "host"     // a host that is not added to the pool, or keeps what Almanac has of it
	Fewer    Kind = "fewer"    // a reservation has fewer hosts than its owner asked for
	Overdue  Kind = "overdue"  // becomes due at once
	Address  Kind = "address"  // a floating IP address of Blazar's pool
	Over     Kind = "over"     // a lease that has ended
	There    Kind = "there"    // Almanac has the lease already
	Stranger Kind = "stranger" // a server on reserved hosts that is not the owner's
	Leftover Kind = "leftover" // what Blazar has left in the cloud
	Extra    Kind = "extra"    // what Almanac does not do for an owner: events, actions before the end
)

// Refused maps the kinds that stop the takeover to what happens if the operator leaves them.
var Refused = map[Kind]string{
	DoubleBooked: "the lease that was made later is not taken over",
	UnknownHost:  "the lease is not taken over",
	Unsupported:  "the lease is taken over without this reservation",
	InError:      "the lease is not taken over",
	Unfinished:   "the lease is not taken over",
	Unreadable:   "the lease is not taken over",
}

// Finding is one thing that the operator should know.
type Finding struct {
	Kind  Kind   `json:"kind"`
	Lease string `json:"lease,omitempty"` // its id; empty if it is not about a lease
	Text  string `json:"text"`
	// Remedy is what the operator can do; empty if nothing needs to be done.
	Remedy string `json:"remedy,omitempty"`
	// Stops is true if the takeover is refused because of it.
	Stops bool `json:"stops"`
}

// find adds a finding about a lease, with what to do.
func (p *planner) find(kind Kind, lease, remedy, format string, values ...any) {
	_, refused := Refused[kind]
	p.plan.Findings = append(p.plan.Findings, Finding{
		Kind: kind, Lease: lease, Text: fmt.Sprintf(format, values...), Remedy: remedy,
		Stops: refused && !slices.Contains(p.options.Leave, kind),
	})
}

// Stopped returns how many findings stop the takeover.
func (p *Plan) Stopped() (count int) {
	for _, f := range p.Findings {
		if f.Stops {
			count++
		}
	}
	return count
}
