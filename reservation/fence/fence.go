// Package fence says what has to lie on the cloud so that promised hosts are kept
// for those they are promised to, under Nova's own scheduler: aggregates, traits,
// resource classes and flavors. It only decides; reservation/upkeep carries it out.
//
// The fence is one aggregate without an availability zone, with the metadata
// trait:CUSTOM_ALMANAC_RESERVED=required: with [scheduler]
// enable_isolated_aggregate_filtering Nova keeps every flavor without that trait off
// its hosts (nova/scheduler/request_filter.py isolate_aggregates). A reservation of
// hosts has an aggregate of its own with a trait of its own, which its flavors
// require; a reservation of instances shares hosts with others, so its flavors
// require a resource class of its own, of which each of its hosts has as many as
// there are instances promised on it.
//
// How that comes about in Nova: a flavor's trait:X=required and resources:X=n become
// part of the request to Placement (nova/scheduler/utils.py ResourceRequest), and an
// aggregate that requires a trait which the flavor or image does not is forbidden to
// it, whatever else it requires. Placement leaves out the host and its child providers
// where the host is in a forbidden aggregate, and takes traits and resources from any
// provider of a host's tree that serves the request (placement/objects/research_context.py
// get_trees_matching_all). Keys such as almanac:reservation are of no namespace that Nova
// knows, and pass its validation (nova/api/validation/extra_specs/validators.py) and
// filters. Names of traits and classes, keys and values have 255 characters at most.
package fence

import (
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// What lies on the cloud, by name. Everything that is Almanac's can be told by it.
const (
	// Aggregate has all promised hosts from the time on that Rules say.
	Aggregate = "almanac-fence"
	// AggregatePrefix begins the name of each reservation's aggregate; its id follows.
	AggregatePrefix = "almanac-reservation-"
	// ImagesAggregate has the hosts that Nova is being asked to put an image on; it keeps
	// nobody off.
	ImagesAggregate = "almanac-images"
	// OwnPrefix begins the names of all traits and resource classes of Almanac.
	OwnPrefix = "CUSTOM_ALMANAC_"
	// Reserved is the trait of the hosts in the fence.
	Reserved = OwnPrefix + "RESERVED"
	// Shared is the trait of the hosts that serve reservations of instances.
	Shared = OwnPrefix + "SHARED"
	// Closed is a trait that no host has. Until its start has come a reservation's
	// flavors require it: its project may use them already, which takes Nova long to
	// settle, and taking one extra spec away then lets it in.
	Closed = OwnPrefix + "CLOSED"
	// ReservationPrefix begins a reservation's own trait or resource class; its id
	// follows in capitals, with _ for -.
	ReservationPrefix = OwnPrefix + "RESERVATION_"
	// ProviderPrefix begins the name of the child provider that has the resource
	// classes of a host: Nova would take them off the host's own.
	ProviderPrefix = "almanac_"
	// FlavorPrefix begins the name of each reservation's flavors; its id follows.
	FlavorPrefix = "reservation:"
	// ProjectMark is the metadata of an aggregate that names the owner's project, and
	// the extra spec of a flavor that names the project that may use it.
	ProjectMark = "almanac:project"
)

// OwnName is a reservation's own trait, and of a reservation of instances its own
// resource class.
func OwnName(reservation string) string {
	return ReservationPrefix + strings.ToUpper(strings.ReplaceAll(reservation, "-", "_"))
}

// Rules are what the operator has settled.
type Rules struct {
	// Ahead is how many seconds before its start a claim closes its host to the
	// instances of others: reservation.lead_time, or longest with fence = always.
	Ahead int64
	// Prepare is how many seconds before its start a reservation's own things are made.
	Prepare int64
	// Flavors are shapes of which each reservation of hosts gets one of its own, beside
	// the one that takes a whole host.
	Flavors []inventory.Flavor
	// RootDisk is how many GB the root disk has in the flavor that takes a whole host; 0 is all
	// of the host's.
	RootDisk int64
}

// Layout is what of Almanac's lies on the cloud, or should.
type Layout struct {
	Aggregates map[string]inventory.Aggregate // by name; wanted ones have no ID
	Traits     map[string][]string            // by host: Almanac's traits on its provider, sorted
	Rooms      map[string]map[string]int64    // by host and resource class: how many instances
	Flavors    map[string]inventory.Flavor    // by ID
	// Names are the traits and resource classes of Almanac that exist at all, sorted.
	// Of a wanted layout they are what its other fields name.
	TraitNames, ClassNames []string
}

// Action is what a step does.
type Action string

// The actions, in the order in which they are done: what only adds comes first.
const (
	CreateAggregate Action = "create aggregate" // with Step.Aggregate's Metadata
	MarkAggregate   Action = "set metadata"     // of Step.Aggregate: its Metadata; others stay
	AddTraits       Action = "add traits"       // Step.Traits to Step.Host; made where they do not exist
	AddRooms        Action = "add rooms"        // Step.Host shall have Step.Rooms; other classes stay; likewise made
	CreateFlavor    Action = "create flavor"    // with its extra specs; the project of ProjectMark may use it
	MarkFlavor      Action = "set extra specs"  // Step.Flavor's ExtraSpecs, by its ID; others stay. Nova makes a flavor without any
	OpenFlavor      Action = "open flavor"      // it requires Closed no more
	AddHost         Action = "add host"         // Step.Host to Step.Aggregate

	DeleteFlavor    Action = "delete flavor"
	RemoveRooms     Action = "remove rooms"     // Step.Host shall have Step.Rooms; 0 is none, other classes stay
	UnmarkAggregate Action = "delete metadata"  // the keys of Step.Aggregate's Metadata
	RemoveHost      Action = "remove host"      // Step.Host from Step.Aggregate
	RemoveTraits    Action = "remove traits"    // Step.Traits from Step.Host
	DeleteAggregate Action = "delete aggregate" // which has no hosts any more
	DeleteTrait     Action = "delete trait"     // Step.Name, which no provider has any more
	DeleteClass     Action = "delete class"     // Step.Name, likewise
)

// Step is one change on the cloud. It names only what changes, so that steps which
// others carry out at the same time on the same host are not undone by it.
type Step struct {
	Action Action
	// Reservation is whose thing it is; empty where it is the fence's.
	Reservation string
	// Aggregate has its ID where it exists; else only its Name says which it is.
	Aggregate inventory.Aggregate
	Host      string
	Traits    []string
	Rooms     map[string]int64 // how many there shall be, by class
	Flavor    inventory.Flavor
	Name      string
	// Reason says in a sentence for the operator what is not as it should be.
	Reason string
}

// Adds says that the step takes nothing away. In doubt only such steps are done.
func (s *Step) Adds() bool {
	switch s.Action {
	case CreateAggregate, MarkAggregate, AddTraits, AddRooms, CreateFlavor, MarkFlavor, OpenFlavor, AddHost:
		return true
	}
	return false
}

// Forever as Rules.Ahead closes hosts from the booking on.
const Forever = int64(span.Forever)
