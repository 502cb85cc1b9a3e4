// SPDX-License-Identifier: Apache-2.0

// Package placing defines the types of instance placement: the request, the verdict of a filter on
// a host, the claim in Placement, and the decision.
package placing

// ReservationHint is the scheduler hint that names a reservation.
const ReservationHint = "reservation"

// BestEffortHint is the scheduler hint that names the best-effort VM for which Almanac creates a
// server.
const BestEffortHint = "almanac:besteffort"

// Request is the input of a placement decision, from Nova's RequestSpec
// (nova/objects/request_spec.py). It is for one instance or for several of the same shape; either
// all of them are placed or none.
type Request struct {
	ID                string // of the API request, "req-…"
	ProjectID, UserID string
	// Instances are the ids of the instances, in the order in which they are placed.
	Instances []string
	// Hints are the scheduler hints of the boot request.
	Hints map[string][]string
	// Preemptible is true if the instance may be evicted to make room.
	Preemptible bool
	// Resources are the amounts for each instance, by resource class of Placement.
	Resources map[string]int64
	// Required and Forbidden are traits; AnyOf requires one trait of each list.
	Required, Forbidden []string
	AnyOf               [][]string
	Zone                string // availability zone; empty means any
	// Host and Node request one host, by the name of its nova-compute or of its hypervisor; Cell
	// requests a host in the cell with that UUID. Empty means any.
	Host, Node, Cell string
	// PreferredCell is the cell of an instance that may be moved to another cell.
	PreferredCell string
	// MemberOf requires one aggregate of each list, NotMemberOf excludes all of its aggregates;
	// both contain UUIDs.
	MemberOf    [][]string
	NotMemberOf []string
	// ForceHosts and ForceNodes, if they are not empty, are the only hosts allowed. These hosts
	// pass all filters except those of Placement (nova/scheduler/host_manager.py
	// get_filtered_hosts). IgnoreHosts are excluded. The case of names does not matter.
	ForceHosts, ForceNodes, IgnoreHosts []string
	Group                               *Group // server group; nil means none
	FlavorName                          string
	ExtraSpecs                          map[string]string // of the flavor
	ImageID                             string            // of the image; empty if it boots from a volume
	ImageProperties                     map[string]string // of the image, as "hw_architecture"
	// Alternates is the number of alternates for each instance.
	Alternates int
	// Rebuild is true if the instance stays on its host: nothing is claimed, and only the filters
	// that Nova runs on a rebuild count.
	Rebuild bool
}

// Group is a server group (nova/objects/instance_group.py).
type Group struct {
	ID      string
	Policy  string   // affinity, anti-affinity, soft-affinity, soft-anti-affinity
	Hosts   []string // of its members
	Members []string // ids of instances
	// MaxPerHost is max_server_per_host of anti-affinity; 0 means 1.
	MaxPerHost int
}

// Verdict is the result of a filter for one host: the zero Verdict admits the host, any other
// refuses it for a Reason.
type Verdict struct {
	Reason string
}

// Admit is the verdict that admits a host.
var Admit = Verdict{}

// Refuse returns the verdict that refuses a host, with a sentence for the user.
func Refuse(reason string) Verdict { return Verdict{Reason: reason} }

// Admitted reports whether the host passes.
func (v Verdict) Admitted() bool { return v == Admit }
