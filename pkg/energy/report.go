package energy

import "github.com/almanac-cloud/almanac/pkg/span"

// Report is what the controller saw at its last measurement, for those who look on from
// other processes.
type Report struct {
	At span.Instant
	// Controller names the process that measured.
	Controller string
	// Halt says why nothing is switched off now; empty where it may be.
	Halt   string
	Alarms []Alarm
	Agents []Agent
	Hosts  []Observed // by name
}

// Agent is a process that switches machines.
type Agent struct {
	Name  string
	Hosts int
	Seen  span.Instant // when it was last heard of
	Lost  bool         // it has not been heard of for too long
}

// Observed is a host at a measurement.
type Observed struct {
	Machine Machine
	Reading Reading
	Agent   string // empty where none switches it
	Driver  string
	Mode    Mode // in force
	// Explanation says why the host is on or off, and what would change it, in sentences.
	Explanation []string
}
