// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// PreemptibleInstances is the answer to GET /v1/preemptible: first the instances that can be
// evicted, cheapest first, then the others.
type PreemptibleInstances struct {
	Instances []PreemptibleInstance `json:"instances"`
}

// PreemptibleInstance is an instance that may be evicted. Holds are its resources on the host by
// resource class of Placement, empty if unknown. Cost is the present cost of its loss, null if
// evictions are off.
type PreemptibleInstance struct {
	ID         string           `json:"id"`
	Name       string           `json:"name"`
	ProjectID  string           `json:"project_id"`
	Host       string           `json:"host"`
	Status     string           `json:"status"`
	Flavor     string           `json:"flavor"`
	Holds      map[string]int64 `json:"holds"`
	LaunchedAt *time.Time       `json:"launched_at"`
	Cost       *int64           `json:"cost"`
	Unit       string           `json:"unit"`
	Evictable  bool             `json:"evictable"`
	Reason     string           `json:"reason,omitempty"` // why it is not evictable
}

// PreemptionCosts is the answer to GET /v1/preemptible/cost: the present cost for each host of
// making room for an instance with these Resources. Reason is set if no host is considered.
type PreemptionCosts struct {
	Resources  map[string]int64 `json:"resources"` // by resource class of Placement
	Considered int              `json:"considered"`
	Hosts      []PreemptionCost `json:"hosts"`
	Reason     string           `json:"reason,omitempty"`
}

// PreemptionCost is the cost for one host: the host has room (Room), would have room without its
// Victims, or cannot run the instance (Reason).
type PreemptionCost struct {
	Host    string   `json:"host"`
	Room    bool     `json:"room"`
	Victims []Victim `json:"victims"`
	Cost    int64    `json:"cost"`
	Unit    string   `json:"unit"`
	Reason  string   `json:"reason,omitempty"`
}

// Victim is an instance that is evicted for another.
type Victim struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	ProjectID string `json:"project_id"`
	Cost      int64  `json:"cost"`
	Unit      string `json:"unit"`
}
