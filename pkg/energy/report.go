package energy

import "github.com/almanac-cloud/almanac/pkg/span"

// Report is what the controller saw at its last measurement, for those who look on from
// other processes.
type Report struct {
	At span.Instant `json:"at"`
	// Controller names the process that measured.
	Controller string `json:"controller,omitempty"`
	// Halt is why nothing is switched off now; empty where hosts may be.
	Halt   string     `json:"halt,omitempty"`
	Alarms []Alarm    `json:"alarms,omitempty"`
	Agents []Agent    `json:"agents,omitempty"`
	Hosts  []Observed `json:"hosts,omitempty"` // by name
}

// Agent is a process that switches machines.
type Agent struct {
	Name  string       `json:"name"`
	Hosts int          `json:"hosts"`
	Seen  span.Instant `json:"seen"`           // when it was last heard of
	Lost  bool         `json:"lost,omitempty"` // it has not been heard of for too long
}

// Observed is a host at a measurement.
type Observed struct {
	Machine Machine `json:"machine"`
	Reading Reading `json:"reading"`
	Agent   string  `json:"agent,omitempty"` // empty where none switches it
	Driver  string  `json:"driver,omitempty"`
	Mode    Mode    `json:"mode,omitempty"` // in force
	// Explanation is why the host is on or off, and what would change that, in sentences.
	Explanation []string `json:"explanation,omitempty"`
}
