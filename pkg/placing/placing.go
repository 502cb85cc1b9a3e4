// Package placing has the words of instance placement: what is to be placed, what a
// filter says of a host, how hosts rank, and what was decided.
package placing

// ReservationHint is the scheduler hint that names a reservation.
const ReservationHint = "reservation"

// BestEffortHint is the scheduler hint that names the VM of best-effort work that a server
// is to be.
const BestEffortHint = "almanac:besteffort"

// Request is what a placement decision needs to know; the source is Nova's RequestSpec
// (nova/objects/request_spec.py). It stands for one instance or for several of one
// shape, which are placed all or not at all.
type Request struct {
	ID                string // of the API request, "req-…"
	ProjectID, UserID string
	// Instances are the ids of the instances, in the order in which they are placed.
	Instances []string
	// Hints are the scheduler hints of the boot request.
	Hints map[string][]string
	// Preemptible says that the instance may be terminated to make room.
	Preemptible bool
	// Resources are what each instance takes, by resource class of Placement.
	Resources map[string]int64
	// Required and Forbidden are traits; of each list of AnyOf one is required.
	Required, Forbidden []string
	AnyOf               [][]string
	Zone                string // availability zone; empty is any
	// Host and Node ask for one host, by the name of its nova-compute or of its
	// hypervisor; Cell for a host in the cell with that UUID. Empty is any.
	Host, Node, Cell string
	// PreferredCell is the cell that the instance is in, where it may be moved to another.
	PreferredCell string
	// MemberOf asks for a host that is in one aggregate of each list, NotMemberOf for one
	// that is in none; aggregates by UUID.
	MemberOf    [][]string
	NotMemberOf []string
	// ForceHosts and ForceNodes, where they are not empty, are the only ones allowed, and
	// pass all filters but those of Placement (nova/scheduler/host_manager.py
	// get_filtered_hosts). IgnoreHosts are not allowed. Names differ in more than case.
	ForceHosts, ForceNodes, IgnoreHosts []string
	Group                               *Group // server group; nil is none
	FlavorName                          string
	ExtraSpecs                          map[string]string // of the flavor
	ImageID                             string            // of the image; empty where it boots from a volume
	ImageProperties                     map[string]string // of the image, as "hw_architecture"
	// Alternates is how many further hosts are wanted beside each that is chosen.
	Alternates int
	// Rebuild says that the instance stays where it is: nothing is claimed, and only the
	// filters that Nova asks on a rebuild count.
	Rebuild bool
}

// Group is a server group (nova/objects/instance_group.py).
type Group struct {
	ID      string
	Policy  string   // affinity, anti-affinity, soft-affinity, soft-anti-affinity
	Hosts   []string // on which its members are
	Members []string // ids of instances
	// MaxPerHost is max_server_per_host of anti-affinity; 0 is 1.
	MaxPerHost int
}

// Verdict is a filter's word on one host: the zero Verdict admits it, any other
// refuses it and says why.
type Verdict struct {
	Reason string
}

// Admit is the verdict that lets a host pass.
var Admit = Verdict{}

// Refuse gives the verdict that keeps a host out, with a sentence for the user.
func Refuse(reason string) Verdict { return Verdict{Reason: reason} }

// Admitted says that the host passes.
func (v Verdict) Admitted() bool { return v == Admit }
