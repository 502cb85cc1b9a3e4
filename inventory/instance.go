package inventory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Instance is a server of Nova: a guest on a host, or on its way there.
type Instance struct {
	ID, Name, ProjectID, UserID string
	// Host is where it is; empty where it is nowhere, as one that is shelved and offloaded.
	Host string
	// Status is Nova's (ACTIVE, SHUTOFF, SHELVED_OFFLOADED, DELETED, …), Task its task
	// state; empty where it has none.
	Status, Task string
	// Created is when it was asked for, Launched when it last began to run on a host; 0
	// is not yet.
	Created, Launched span.Instant
	Flavor            Flavor // as it was when the instance was made or resized
	Metadata          map[string]string
	// Hints are the scheduler hints of its boot request; nil where Nova does not tell
	// (compute API before 2.100).
	Hints  map[string][]string
	Locked bool
	// Preemptible says that it may be terminated to make room, Protected that it may not all
	// the same.
	Preemptible, Protected bool
	// Holds is what it has of the stocks of its host in Placement, by resource class. It is
	// read of preemptible instances only; nil is not known.
	Holds map[string]int64
	// Reservation is the one that it was let into by its hint; empty is none, or that this is
	// not known. That Hints name one proves nothing: anybody may write there what he likes.
	Reservation string
}

// Guest is what is remembered of an instance from the request that placed it.
type Guest struct {
	Reservation string // that it was let into by its hint; empty is none
	Preemptible bool   // by its hint
}

// Recognize completes i with what is remembered of it.
func (i *Instance) Recognize(g Guest) {
	i.Reservation, i.Preemptible = g.Reservation, i.Preemptible || g.Preemptible
}

// evictable are the statuses in which an instance that Nova does nothing with can be
// terminated to make room.
var evictable = []string{"ACTIVE", "PAUSED", "SUSPENDED", "SHUTOFF", "RESCUE", "SHELVED", "ERROR"}

// Spared says why a preemptible instance cannot be evicted now; empty where it can.
func (i *Instance) Spared() string {
	switch {
	case !i.Preemptible:
		return "it is not preemptible"
	case i.Protected:
		return "it is protected, or cannot leave as it is"
	case i.Locked:
		return "it is locked"
	case i.Task != "":
		return "Nova is busy with it: " + i.Task
	case !slices.Contains(evictable, i.Status):
		return "its status is " + i.Status
	case len(i.Holds) == 0:
		return "Placement has nothing of it on its host"
	}
	return ""
}

// Evictable says that the instance can be evicted now.
func (i *Instance) Evictable() bool { return i.Preemptible && i.Spared() == "" }

// Flavor is the shape of an instance.
type Flavor struct {
	ID, Name   string // of the flavor in an Instance, ID may be empty
	Resources  resource.Vector
	ExtraSpecs map[string]string
	Public     bool
}

// Traits gives those that a host must have, and must not have, for an instance of the
// flavor, sorted.
func (f *Flavor) Traits() (required, forbidden []string) {
	for key, value := range f.ExtraSpecs {
		trait, is := strings.CutPrefix(key, "trait:")
		switch {
		case is && value == "required":
			required = append(required, trait)
		case is && value == "forbidden":
			forbidden = append(forbidden, trait)
		}
	}
	slices.Sort(required)
	slices.Sort(forbidden)
	return required, forbidden
}

// ReservationMark is the extra spec of a flavor, and the metadata of an aggregate,
// that names the reservation it was made for.
const ReservationMark = "almanac:reservation"

// ReservationID is the reservation in which the instance was made, by its flavor or by
// its hint; empty is none.
func (i *Instance) ReservationID() string {
	return cmp.Or(i.Flavor.ExtraSpecs[ReservationMark], i.Reservation)
}

// groupHint is the scheduler hint of the boot request that names a server group by its id
// (nova/api/openstack/compute/schemas/servers.py).
const groupHint = "group"

// Group is the server group in which the instance was made; empty is none, or that Nova
// does not tell hints.
func (i *Instance) Group() string {
	if groups := i.Hints[groupHint]; len(groups) > 0 {
		return groups[0]
	}
	return ""
}

// Aggregate is a host aggregate of Nova.
type Aggregate struct {
	ID         int
	UUID, Name string
	Zone       string // availability zone, or nothing
	Metadata   map[string]string
	Hosts      []string // sorted
}

// PreemptibleRule says which instances are preemptible; one of its signs is enough.
type PreemptibleRule struct {
	ExtraSpec string   // of the flavor, true; empty is no sign
	Hint      string   // of the boot request, true; empty is no sign
	Projects  []string // all of whose instances are
	// Protect is the key of an instance's metadata that protects it where it is true; empty
	// is none.
	Protect string
	// Leaves are the statuses in which instances can leave a host the way they are to; nil
	// are all.
	Leaves []string
}

// Protects says whether the rule protects i, should it be preemptible: it is marked so, or
// cannot leave as it is.
func (p PreemptibleRule) Protects(i *Instance) bool {
	return p.Protect != "" && isTrue(i.Metadata[p.Protect]) || p.Leaves != nil && !slices.Contains(p.Leaves, i.Status)
}

// Marks says whether the rule makes i preemptible.
func (p PreemptibleRule) Marks(i *Instance) bool {
	return p.ExtraSpec != "" && isTrue(i.Flavor.ExtraSpecs[p.ExtraSpec]) ||
		p.Hint != "" && slices.ContainsFunc(i.Hints[p.Hint], isTrue) ||
		slices.Contains(p.Projects, i.ProjectID)
}

// isTrue reads a word as oslo.utils strutils.bool_from_string does.
func isTrue(word string) bool {
	return slices.Contains([]string{"1", "t", "true", "on", "y", "yes"}, strings.ToLower(strings.TrimSpace(word)))
}
