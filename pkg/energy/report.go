// SPDX-License-Identifier: Apache-2.0

package energy

import "github.com/almanac-cloud/almanac/pkg/span"

// Report is what the controller observed at its last measurement. Other processes read it from the
// database.
type Report struct {
	At span.Instant `json:"at"`
	// Controller is the name of the replica that measured.
	Controller string `json:"controller,omitempty"`
	// Halt is the reason why nothing is switched off now; "" if hosts may be.
	Halt   string     `json:"halt,omitempty"`
	Alarms []Alarm    `json:"alarms,omitempty"`
	Agents []Agent    `json:"agents,omitempty"`
	Hosts  []Observed `json:"hosts,omitempty"` // by name
}

// Agent is a process that switches machines.
type Agent struct {
	Name  string       `json:"name"`
	Hosts int          `json:"hosts"`
	Seen  span.Instant `json:"seen"`           // time of its last message
	Lost  bool         `json:"lost,omitempty"` // its last message is too old
}

// Observed is the state of a host at a measurement.
type Observed struct {
	Machine Machine `json:"machine"`
	Reading Reading `json:"reading"`
	Agent   string  `json:"agent,omitempty"` // empty if no agent switches the host
	Driver  string  `json:"driver,omitempty"`
	Mode    Mode    `json:"mode,omitempty"` // in force
	// Explanation states, in sentences, why the host is on or off, and what would change that.
	Explanation []string `json:"explanation,omitempty"`
}
