package v1

// Examination is the answer to GET and POST /v1/doctor.
type Examination struct {
	// Cloud says that there is a cloud; without one only the reservations and the hosts
	// are examined.
	Cloud bool `json:"cloud"`
	// Doubt says why the inventory is not to be trusted now; then nothing is taken away.
	Doubt    string    `json:"doubt,omitempty"`
	Findings []Finding `json:"findings"`
}

// Finding is one thing that is not as it should be.
type Finding struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Message string `json:"message"`
	Remedy  string `json:"remedy"`
	Fixable bool   `json:"fixable"`
	// Outcome is planned, fixed, refused or failed, of a finding that is fixable and
	// was to be fixed; Detail says why it was refused or has failed.
	Outcome string `json:"outcome,omitempty"`
	Detail  string `json:"detail,omitempty"`
}

// Treatment is the body of POST /v1/doctor.
type Treatment struct {
	DryRun bool `json:"dry_run"` // only say what would be done
}
