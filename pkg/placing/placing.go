// Package placing has the vocabulary of instance placement: the request, the verdict of a
// filter on a host, the claim in Placement, and the decision.
package placing

// ReservationHint is the scheduler hint that names a reservation.
const ReservationHint = "reservation"

// BestEffortHint is the scheduler hint that names the VM of best-effort work for which a
// server is created.
const BestEffortHint = "almanac:besteffort"

// Request is the input of a placement decision, from Nova's RequestSpec
// (nova/objects/request_spec.py). It is for one instance or for several of one shape; these
// are placed all or none.
type Request struct {
	ID                string // of the API request, "req-…"
	ProjectID, UserID string
	// Instances are the ids of the instances, in the order in which they are placed.
	Instances []string
	// Hints are the scheduler hints of the boot request.
	Hints map[string][]string
	// Preemptible reports whether the instance may be evicted to make room.
	Preemptible bool
	// Resources are the amounts for each instance, by resource class of Placement.
	Resources map[string]int64
	// Required and Forbidden are traits; AnyOf requires one of each list.
	Required, Forbidden []string
	AnyOf               [][]string
	Zone                string // availability zone; empty is any
	// Host and Node ask for one host, by the name of its nova-compute or of its
	// hypervisor; Cell for a host in the cell with that UUID. Empty is any.
	Host, Node, Cell string
	// PreferredCell is the cell of an instance that may be moved to another cell.
	PreferredCell string
	// MemberOf requires one aggregate of each list, NotMemberOf none of these; aggregates by
	// UUID.
	MemberOf    [][]string
	NotMemberOf []string
	// ForceHosts and ForceNodes, where they are not empty, are the only hosts allowed, and pass
	// all filters except those of Placement (nova/scheduler/host_manager.py
	// get_filtered_hosts). IgnoreHosts are not allowed. The case of names does not matter.
	ForceHosts, ForceNodes, IgnoreHosts []string
	Group                               *Group // server group; nil is none
	FlavorName                          string
	ExtraSpecs                          map[string]string // of the flavor
	ImageID                             string            // of the image; empty where it boots from a volume
	ImageProperties                     map[string]string // of the image, as "hw_architecture"
	// Alternates is the number of further hosts that each answer lists.
	Alternates int
	// Rebuild reports whether the instance stays on its host: nothing is claimed, and only the
	// filters that Nova runs on a rebuild count.
	Rebuild bool
}

// Group is a server group (nova/objects/instance_group.py).
type Group struct {
	ID      string
	Policy  string   // affinity, anti-affinity, soft-affinity, soft-anti-affinity
	Hosts   []string // of its members
	Members []string // ids of instances
	// MaxPerHost is max_server_per_host of anti-affinity; 0 is 1.
	MaxPerHost int
}

// Verdict is the result of a filter for one host: the zero Verdict admits it, any other
// refuses it for a Reason.
type Verdict struct {
	Reason string
}

// Admit is the verdict that lets a host pass.
var Admit = Verdict{}

// Refuse returns the verdict that refuses a host, with a sentence for the user.
func Refuse(reason string) Verdict { return Verdict{Reason: reason} }

// Admitted reports whether the host passes.
func (v Verdict) Admitted() bool { return v == Admit }
