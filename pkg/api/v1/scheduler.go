package v1

// FilterQuestion asks which of Hosts a request may use.
type FilterQuestion struct {
	Hosts   []string         `json:"hosts"`
	Request PlacementRequest `json:"request"`
}

// PlacementRequest is what matters of Nova's RequestSpec here.
type PlacementRequest struct {
	ProjectID   string `json:"project_id"`
	Hints       Hints  `json:"hints"`
	Preemptible bool   `json:"preemptible"`
}

// FilterAnswer has the hosts that may be used, in the order asked, and for each
// other one the reason.
type FilterAnswer struct {
	Hosts   []string          `json:"hosts"`
	Refused map[string]string `json:"refused"`
}

// WeighQuestion asks which of Hosts a request may use, and how good each is for it.
type WeighQuestion struct {
	Hosts   []string     `json:"hosts"`
	Request WeighRequest `json:"request"`
}

// WeighRequest is a PlacementRequest with what else Nova's RequestSpec says of
// reservations.
type WeighRequest struct {
	ProjectID   string `json:"project_id"`
	Hints       Hints  `json:"hints"`
	Preemptible bool   `json:"preemptible"`
	// ExtraSpecs are those of the flavor.
	ExtraSpecs map[string]string `json:"extra_specs"`
	// Instances are the ids of those for which a host is looked for now. Whose guests they
	// become is remembered.
	Instances []string `json:"instances"`
}

// WeighAnswer is a FilterAnswer with weights.
type WeighAnswer struct {
	Hosts   []string          `json:"hosts"`
	Refused map[string]string `json:"refused"`
	// Weights has each host that was asked for; the larger the better.
	Weights map[string]float64 `json:"weights"`
	// Refusal tells the tenant why there is no host, where it is for the reservation that
	// the request names.
	Refusal string `json:"refusal,omitempty"`
}
