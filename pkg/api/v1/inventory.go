// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Property is an entry in the catalog of properties that a filter may use.
type Property struct {
	Name    string `json:"name"`
	Type    string `json:"type"` // number, string, bool or list
	Values  []any  `json:"values"`
	BuiltIn bool   `json:"built_in"`
	Hidden  bool   `json:"hidden"`
}

// Properties is the answer to GET /v1/properties.
type Properties struct {
	Properties []Property `json:"properties"`
}

// PropertyChange is the body of PATCH /v1/properties/{name}.
type PropertyChange struct {
	Hidden *bool `json:"hidden"`
}

// Host is a host in the inventory. Problem is why the host accepts no instances, or empty; callers
// that may not see the reason see only that it accepts none. Instances are only in answers about
// one host, for callers that may see them, and if the source of the inventory reports them.
type Host struct {
	Name          string         `json:"name"`
	Resources     Resources      `json:"resources"`
	Used          Resources      `json:"used"`
	InstanceCount int            `json:"instance_count"`
	Zone          string         `json:"zone"`
	Aggregates    []string       `json:"aggregates"`
	Traits        []string       `json:"traits"`
	Properties    map[string]any `json:"properties"`
	Reservable    bool           `json:"reservable"`
	Power         string         `json:"power"`
	Problem       string         `json:"problem"`
	BootSeconds   int64          `json:"boot_seconds"`
	FlopsPerWatt  float64        `json:"flops_per_watt"` // 0 if unknown
	Instances     []Instance     `json:"instances,omitzero"`
}

// Instance is an instance on a host. Status is Nova's; LaunchedAt is null before the instance
// runs, and ReservationID is empty for an instance created outside of reservations.
type Instance struct {
	ID            string     `json:"id"`
	Name          string     `json:"name"`
	ProjectID     string     `json:"project_id"`
	Status        string     `json:"status"`
	Flavor        string     `json:"flavor"`
	LaunchedAt    *time.Time `json:"launched_at"`
	Preemptible   bool       `json:"preemptible"`
	ReservationID string     `json:"reservation_id,omitempty"`
}

// HostList is one page of the answer to GET /v1/hosts; Next is the marker of the next page.
// UnknownProperties are those of the filter that no host has.
type HostList struct {
	Hosts             []Host   `json:"hosts"`
	Next              Marker   `json:"next"`
	UnknownProperties []string `json:"unknown_properties,omitempty"`
}

// HostChange is the body of PATCH /v1/hosts/{name}. A null removes the property.
type HostChange struct {
	Properties map[string]any `json:"properties,omitempty"`
	Reservable *bool          `json:"reservable,omitempty"`
	Power      *Power         `json:"power,omitempty"`
}

// Window is a range of feasible starts, from Start to LatestStart; End is the end of a reservation
// that starts at LatestStart. Free is the number of hosts that are free at Start.
type Window struct {
	Start       time.Time `json:"start"`
	End         time.Time `json:"end"`
	LatestStart time.Time `json:"latest_start"`
	Free        int       `json:"free"`
}

// Availability is the answer to GET /v1/availability. UnknownProperties are those of the filter
// that no host has.
type Availability struct {
	Matched           int      `json:"matched"`
	Windows           []Window `json:"windows"`
	UnknownProperties []string `json:"unknown_properties,omitempty"`
	// NextStart is the first start after the requested time with room, if there are no windows.
	NextStart *time.Time `json:"next_start,omitempty"`
}
