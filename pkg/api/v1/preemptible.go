package v1

import "time"

// PreemptibleInstances is the answer to GET /v1/preemptible: those that can be evicted
// first, the cheapest first, then the others.
type PreemptibleInstances struct {
	Instances []PreemptibleInstance `json:"instances"`
}

// PreemptibleInstance is an instance that may have to leave for others. Holds is what it
// has of its host, by resource class of Placement; it is empty where that is not known.
// Cost is what its loss costs now, null where nobody makes room.
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
	Reason     string           `json:"reason,omitempty"` // why it is not
}

// PreemptionCosts is the answer to GET /v1/preemptible/cost: what it would cost each host
// now to have an instance that takes Resources. Reason says why no host would be asked.
type PreemptionCosts struct {
	Resources  map[string]int64 `json:"resources"` // by resource class of Placement
	Considered int              `json:"considered"`
	Hosts      []PreemptionCost `json:"hosts"`
	Reason     string           `json:"reason,omitempty"`
}

// PreemptionCost is a host that may have an instance: as it is (Room), without Victims, or
// not at all (Reason).
type PreemptionCost struct {
	Host    string   `json:"host"`
	Room    bool     `json:"room"`
	Victims []Victim `json:"victims"`
	Cost    int64    `json:"cost"`
	Unit    string   `json:"unit"`
	Reason  string   `json:"reason,omitempty"`
}

// Victim is an instance that leaves for another.
type Victim struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	ProjectID string `json:"project_id"`
	Cost      int64  `json:"cost"`
	Unit      string `json:"unit"`
}
