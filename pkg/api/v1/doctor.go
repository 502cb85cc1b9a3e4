// SPDX-License-Identifier: Apache-2.0

package v1

// Examination is the answer to GET and POST /v1/doctor.
type Examination struct {
	// Cloud is false without a cloud; then only the reservations and the hosts are examined.
	Cloud bool `json:"cloud"`
	// Untrusted is why the inventory is untrusted; then nothing is taken away. Empty if it is trusted.
	Untrusted string    `json:"untrusted,omitempty"`
	Findings  []Finding `json:"findings"`
}

// Finding is one inconsistency.
type Finding struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
	Fixable bool   `json:"fixable"`
	// Outcome is planned, fixed, refused or failed; it is set if the finding is fixable and a fix
	// was requested. Detail is the reason for a refusal or failure.
	Outcome string `json:"outcome,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Treatment is the body of POST /v1/doctor.
type Treatment struct {
	DryRun bool `json:"dry_run"` // only plan the fixes
}
