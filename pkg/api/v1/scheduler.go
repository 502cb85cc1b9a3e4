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
