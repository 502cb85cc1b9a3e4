// SPDX-License-Identifier: Apache-2.0

package v1

// FilterQuestion asks which of Hosts a request may use.
type FilterQuestion struct {
	Hosts   []string         `json:"hosts"`
	Request PlacementRequest `json:"request"`
}

// PlacementRequest is the part of Nova's RequestSpec that matters for the answer.
type PlacementRequest struct {
	ProjectID   string `json:"project_id"`
	Hints       Hints  `json:"hints"`
	Preemptible bool   `json:"preemptible"`
}

// FilterAnswer contains the admitted hosts, in the order of the question, and the reason for each
// other host.
type FilterAnswer struct {
	Hosts   []string          `json:"hosts"`
	Refused map[string]string `json:"refused"`
}

// WeighQuestion asks which of Hosts a request may use, and how good each is for it.
type WeighQuestion struct {
	Hosts   []string     `json:"hosts"`
	Request WeighRequest `json:"request"`
}

// WeighRequest is a PlacementRequest with the other fields of Nova's RequestSpec that concern
// reservations.
type WeighRequest struct {
	ProjectID   string `json:"project_id"`
	Hints       Hints  `json:"hints"`
	Preemptible bool   `json:"preemptible"`
	// ExtraSpecs are the extra specs of the flavor.
	ExtraSpecs map[string]string `json:"extra_specs"`
	// Instances are the ids of the instances that Nova is placing. Almanac records to which
	// reservation they belong.
	Instances []string `json:"instances"`
}

// WeighAnswer is a FilterAnswer with weights.
type WeighAnswer struct {
	Hosts   []string          `json:"hosts"`
	Refused map[string]string `json:"refused"`
	// Weights contains the weight of every host of the question, by name; larger is better.
	Weights map[string]float64 `json:"weights"`
	// Refusal is a sentence for the tenant, set if the reservation that the request names leaves
	// no host.
	Refusal string `json:"refusal,omitempty"`
}
