// SPDX-License-Identifier: Apache-2.0

// Package fence computes which aggregates, traits, resource classes and flavors OpenStack
// needs so that Nova's own scheduler keeps reserved hosts for their owners. It is pure;
// reservation/upkeep carries its steps out.
//
// The fence is one aggregate without an availability zone, with the metadata
// trait:CUSTOM_ALMANAC_RESERVED=required: with [scheduler]
// enable_isolated_aggregate_filtering Nova keeps every flavor without that trait off
// its hosts (nova/scheduler/request_filter.py isolate_aggregates). A reservation of
// hosts has its own aggregate and its own trait, which its flavors require. A reservation
// of instances shares hosts with others, so its flavors require its own resource class;
// each of its hosts has one unit of this class for each instance promised on it.
//
// How this works in Nova: a flavor's trait:X=required and resources:X=n become part of
// the request to Placement (nova/scheduler/utils.py ResourceRequest). An aggregate that
// requires a trait is forbidden to every flavor and image without this trait, whatever
// else they require. Placement leaves out a host and its child providers if the host is
// in a forbidden aggregate. Traits and resources may come from any provider of a host's
// tree that serves the request (placement/objects/research_context.py
// get_trees_matching_all). Keys such as almanac:reservation belong to no namespace that
// Nova knows, and pass its validation (nova/api/validation/extra_specs/validators.py) and
// filters. Names of traits and classes, keys and values have at most 255 characters.
package fence

import (
	"strings"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// The names in OpenStack. They mark everything that belongs to Almanac.
const (
	// Aggregate is the fence: it contains all reserved hosts, as early as Rules.Ahead requires.
	Aggregate = "almanac-fence"
	// AggregatePrefix is the prefix of the name of a reservation's aggregate; its id follows.
	AggregatePrefix = "almanac-reservation-"
	// ImagesAggregate contains the hosts on which Nova must cache an image. It keeps no instances
	// off.
	ImagesAggregate = "almanac-images"
	// OwnPrefix begins the names of all of Almanac's traits and resource classes.
	OwnPrefix = "CUSTOM_ALMANAC_"
	// Reserved is the trait of the hosts in the fence.
	Reserved = OwnPrefix + "RESERVED"
	// Shared is the trait of the hosts that serve reservations of instances.
	Shared = OwnPrefix + "SHARED"
	// Closed is a trait that no host has. The flavors of a reservation require it until
	// its start. Its project may use the flavors before that, since Nova needs long to
	// grant access; at the start one extra spec is deleted.
	Closed = OwnPrefix + "CLOSED"
	// ReservationPrefix begins the trait or resource class of a reservation; its id
	// follows in capitals, with _ for -.
	ReservationPrefix = OwnPrefix + "RESERVATION_"
	// ProviderPrefix begins the name of the child provider that has Almanac's resource
	// classes of a host: Nova would delete them from the host's own provider.
	ProviderPrefix = "almanac_"
	// FlavorPrefix begins the name of the flavors of a reservation; its id follows.
	FlavorPrefix = "reservation:"
	// ProjectMark is the metadata key of an aggregate that names the owner's project, and
	// the extra spec of a flavor that names the project that may use it.
	ProjectMark = "almanac:project"
	// PoolKey is the metadata key of the aggregate of a reservation of instances that has the
	// reservation's id, and PoolSpec the extra spec of its flavor that requires it from Nova's
	// AggregateInstanceExtraSpecsFilter. Blazar's clients find the flavor by PoolSpec.
	PoolKey  = "reservation"
	PoolSpec = "aggregate_instance_extra_specs:" + PoolKey
	// MirrorMark is the metadata key of a mirror: an aggregate that Blazar's clients look for. It has
	// the id of the mirrored reservation, or the value FreeHosts.
	MirrorMark = "almanac:mirror"
	FreeHosts  = "free"
)

// IsMirror reports whether an aggregate of Nova is a mirror of Almanac.
func IsMirror(a inventory.Aggregate) bool {
	_, marked := a.Metadata[MirrorMark]
	return marked
}

// OwnName returns the name of a reservation's own trait, or of the resource class of a
// reservation of instances.
func OwnName(reservation string) string {
	return ReservationPrefix + strings.ToUpper(strings.ReplaceAll(reservation, "-", "_"))
}

// Rules are the operator's settings for the fence. Times are in seconds.
type Rules struct {
	// Ahead is how long before its start a claim closes its host to others' instances:
	// reservation.lead_time, or Forever with fence = always.
	Ahead int64
	// Pool closes all hosts of the pool, with and without claims: fence = pool.
	Pool bool
	// Mirror is the name of an aggregate with the free hosts: those of the pool that are in no active
	// reservation of hosts. Each active reservation of hosts has an aggregate too, whose name is its
	// id. Nova's scheduler ignores mirrors. Empty means that there are none.
	Mirror string
	// Prepare is how long before its start the aggregate, traits and flavors of a
	// reservation are created.
	Prepare int64
	// Flavors are the shapes for which each reservation of hosts gets a flavor, beside
	// the one that fills a whole host.
	Flavors []inventory.Flavor
	// RootDisk is the size in GB of the root disk in the flavor that fills a whole host;
	// 0 is the whole disk of the host.
	RootDisk int64
}

// Layout is what Almanac has in OpenStack, or should have.
type Layout struct {
	Aggregates map[string]inventory.Aggregate // by name; wanted ones have no ID
	Traits     map[string][]string            // by host: Almanac's traits on its provider, sorted
	Rooms      map[string]map[string]int64    // by host and resource class: the number of instances
	Flavors    map[string]inventory.Flavor    // by ID
	// TraitNames and ClassNames are all of Almanac's traits and resource classes that
	// exist, sorted. In a wanted layout they are those that its other fields name.
	TraitNames, ClassNames []string
	// Live has, in a wanted layout, the live reservations, by their ids.
	Live map[string]bool
}

// Action is the kind of a step.
type Action string

// The actions, in the order in which they are carried out: steps that only add come first.
const (
	CreateAggregate Action = "create aggregate" // Step.Aggregate, with its Metadata
	MarkAggregate   Action = "set metadata"     // of Step.Aggregate to its Metadata; other keys stay
	AddTraits       Action = "add traits"       // Step.Traits to Step.Host; creates missing ones
	AddRooms        Action = "add rooms"        // sets Step.Rooms of Step.Host and creates missing classes; other classes stay
	CreateFlavor    Action = "create flavor"    // with its extra specs, for the project in ProjectMark
	MarkFlavor      Action = "set extra specs"  // of Step.Flavor, by its ID; other keys stay. Nova creates flavors without extra specs
	OpenFlavor      Action = "open flavor"      // no longer requires Closed
	AddHost         Action = "add host"         // Step.Host to Step.Aggregate

	DeleteFlavor    Action = "delete flavor"
	UnmarkFlavor    Action = "delete extra specs" // the keys of Step.Flavor's ExtraSpecs
	RemoveRooms     Action = "remove rooms"       // sets Step.Rooms of Step.Host; 0 deletes a class, other classes stay
	UnmarkAggregate Action = "delete metadata"    // the keys of Step.Aggregate's Metadata
	RemoveHost      Action = "remove host"        // Step.Host from Step.Aggregate
	RemoveTraits    Action = "remove traits"      // Step.Traits from Step.Host
	DeleteAggregate Action = "delete aggregate"   // which has no more hosts
	DeleteTrait     Action = "delete trait"       // Step.Name, which no provider has
	DeleteClass     Action = "delete class"       // Step.Name, which no provider has
)

// Step is one change in OpenStack. It names only what changes, so that it does not undo
// other changes that are made to the same host at the same time.
type Step struct {
	Action Action
	// Reservation is the id of the reservation that the step belongs to; empty for the fence.
	Reservation string
	// Aggregate has its ID if it exists; otherwise only its Name identifies it.
	Aggregate inventory.Aggregate
	Host      string
	Traits    []string
	Rooms     map[string]int64 // the wanted number, by class
	Flavor    inventory.Flavor
	Name      string
	// Reason is a sentence for the operator that states what is wrong.
	Reason string
}

// Adds reports whether the step only adds. While the inventory is untrusted, only such
// steps are carried out.
func (s *Step) Adds() bool {
	switch s.Action {
	case CreateAggregate, MarkAggregate, AddTraits, AddRooms, CreateFlavor, MarkFlavor, OpenFlavor, AddHost:
		return true
	}
	return false
}

// Mirrors reports whether the step concerns the mirror of a reservation.
func (s *Step) Mirrors() bool {
	return s.Reservation != "" && s.Aggregate.Name == s.Reservation
}

// Forever, as Rules.Ahead, closes hosts as soon as they are booked.
const Forever = int64(span.Forever)
