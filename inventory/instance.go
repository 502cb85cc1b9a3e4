// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"cmp"
	"slices"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Instance is a server of Nova on a host, or on its way to one.
type Instance struct {
	ID        string `json:"id"`
	Name      string `json:"name,omitempty"`
	ProjectID string `json:"project_id,omitempty"`
	UserID    string `json:"user_id,omitempty"`
	// Host is empty if the instance is on no host, for example shelved and offloaded.
	Host string `json:"host,omitempty"`
	// Status is Nova's status (ACTIVE, SHUTOFF, SHELVED_OFFLOADED, DELETED, …), Task its task
	// state, empty if it has none.
	Status string `json:"status,omitempty"`
	Task   string `json:"task,omitempty"`
	// Created is when it was requested, Launched when it last began to run on a host; 0 is not
	// yet.
	Created  span.Instant      `json:"created,omitempty"`
	Launched span.Instant      `json:"launched,omitempty"`
	Flavor   Flavor            `json:"flavor"` // as of the creation or last resize
	Metadata map[string]string `json:"metadata"`
	// Hints are the scheduler hints of its boot request; nil if Nova does not return them
	// (compute API before 2.100).
	Hints  map[string][]string `json:"hints"`
	Locked bool                `json:"locked,omitempty"`
	// Preemptible instances may be terminated to make room. Protected ones may not, even if
	// they are preemptible.
	Preemptible bool `json:"preemptible,omitempty"`
	Protected   bool `json:"protected,omitempty"`
	// Holds are the amounts that it has allocated on its host in Placement, by resource class.
	// Only those of preemptible instances are read; nil is unknown.
	Holds map[string]int64 `json:"holds"`
	// Reservation is the reservation whose hint admitted it; empty if there is none, or if that
	// is unknown. A reservation named in Hints proves nothing: any user can write one there.
	Reservation string `json:"reservation,omitempty"`
}

// InstanceRecord is what was stored about an instance by the request that placed it.
type InstanceRecord struct {
	Reservation string // whose hint admitted it; empty is none
	Preemptible bool   // by its hint
}

// AddRecord adds to i what was stored about it.
func (i *Instance) AddRecord(g InstanceRecord) {
	i.Reservation, i.Preemptible = g.Reservation, i.Preemptible || g.Preemptible
}

// evictable are the statuses in which an instance can be terminated to make room, unless Nova
// is working on it.
var evictable = []string{"ACTIVE", "PAUSED", "SUSPENDED", "SHUTOFF", "RESCUE", "SHELVED", "ERROR"}

// NotEvictable returns the reason why an instance cannot be evicted now; empty if it can.
func (i *Instance) NotEvictable() string {
	switch {
	case !i.Preemptible:
		return "it is not preemptible"
	case i.Protected:
		return "it is protected, or its status does not allow it to leave"
	case i.Locked:
		return "it is locked"
	case i.Task != "":
		return "Nova is busy with it: " + i.Task
	case !slices.Contains(evictable, i.Status):
		return "its status is " + i.Status
	case len(i.Holds) == 0:
		return "it has no allocation on its host"
	}
	return ""
}

// Evictable reports whether the instance can be evicted now.
func (i *Instance) Evictable() bool { return i.Preemptible && i.NotEvictable() == "" }

// Flavor is the shape of an instance.
type Flavor struct {
	ID         string            `json:"id,omitempty"` // in an Instance it may be empty
	Name       string            `json:"name,omitempty"`
	Resources  resource.Vector   `json:"resources"`
	ExtraSpecs map[string]string `json:"extra_specs"`
	Public     bool              `json:"public,omitempty"`
	// EphemeralGB and SwapMB are, in a flavor to be created, its disks besides the root disk, which
	// Resources contains. In other flavors Resources contains all disks.
	EphemeralGB int64 `json:"ephemeral_gb,omitempty"`
	SwapMB      int64 `json:"swap_mb,omitempty"`
}

// Traits returns the traits that a host must have, and must not have, for instances of the
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

// ReservationMark is the key of a flavor's extra spec, and of an aggregate's metadata, whose
// value is the reservation that it was made for.
const ReservationMark = "almanac:reservation"

// ReservationID returns the reservation in which the instance was created, by its flavor or its
// hint; empty if there is none.
func (i *Instance) ReservationID() string {
	return cmp.Or(i.Flavor.ExtraSpecs[ReservationMark], i.Reservation)
}

// groupHint is the scheduler hint of the boot request that contains the id of a server group
// (nova/api/openstack/compute/schemas/servers.py).
const groupHint = "group"

// Group returns the server group in which the instance was created; empty if there is none, or
// if Nova does not return hints.
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
	Zone       string // availability zone, or empty
	Metadata   map[string]string
	Hosts      []string // sorted
}

// PreemptibleRule decides which instances are preemptible. One matching criterion is enough.
type PreemptibleRule struct {
	ExtraSpec string   // of the flavor, if true; empty is no criterion
	Hint      string   // of the boot request, if true; empty is no criterion
	Projects  []string // whose instances are all preemptible
	// Protect is the metadata key that protects an instance if its value is true; empty is
	// none.
	Protect string
	// Leaves are the statuses in which instances can leave a host by the configured action; nil
	// is all.
	Leaves []string
}

// Protects reports whether the rule protects i if i is preemptible: its metadata protects it,
// or its status does not allow it to leave.
func (p PreemptibleRule) Protects(i *Instance) bool {
	return p.Protect != "" && IsTrue(i.Metadata[p.Protect]) || p.Leaves != nil && !slices.Contains(p.Leaves, i.Status)
}

// Marks reports whether the rule makes i preemptible.
func (p PreemptibleRule) Marks(i *Instance) bool {
	return p.ExtraSpec != "" && IsTrue(i.Flavor.ExtraSpecs[p.ExtraSpec]) ||
		p.Hint != "" && slices.ContainsFunc(i.Hints[p.Hint], IsTrue) ||
		slices.Contains(p.Projects, i.ProjectID)
}

// IsTrue reads a boolean as oslo.utils strutils.bool_from_string does.
func IsTrue(word string) bool {
	return slices.Contains([]string{"1", "t", "true", "on", "y", "yes"}, strings.ToLower(strings.TrimSpace(word)))
}
