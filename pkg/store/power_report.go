package store

import (
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// energyReport is an energy.Report as it is stored.
type energyReport struct {
	At         span.Instant   `json:"at"`
	Controller string         `json:"controller,omitempty"`
	Halt       string         `json:"halt,omitempty"`
	Alarms     []energyAlarm  `json:"alarms,omitempty"`
	Agents     []energyAgent  `json:"agents,omitempty"`
	Hosts      []observedHost `json:"hosts,omitempty"`
}

type energyAlarm struct {
	Kind  energy.AlarmKind `json:"kind"`
	Host  string           `json:"host,omitempty"`
	Agent string           `json:"agent,omitempty"`
	Text  string           `json:"text"`
	Since span.Instant     `json:"since"`
}

type energyAgent struct {
	Name  string       `json:"name"`
	Hosts int          `json:"hosts"`
	Seen  span.Instant `json:"seen"`
	Lost  bool         `json:"lost,omitempty"`
}

type observedHost struct {
	Machine     observedMachine `json:"machine"`
	Reading     powerReading    `json:"reading"`
	Agent       string          `json:"agent,omitempty"`
	Driver      string          `json:"driver,omitempty"`
	Mode        energy.Mode     `json:"mode,omitempty"`
	Explanation []string        `json:"explanation,omitempty"`
}

type powerReading struct {
	Host        string       `json:"host,omitempty"`
	State       energy.State `json:"state,omitempty"`
	Watts       float64      `json:"watts,omitempty"`
	Untouchable string       `json:"untouchable,omitempty"`
	Problem     string       `json:"problem,omitempty"`
	At          span.Instant `json:"at,omitempty"`
}

type observedMachine struct {
	Name         string         `json:"name"`
	Phase        energy.Phase   `json:"phase,omitempty"`
	Busy         bool           `json:"busy,omitempty"`
	Closed       bool           `json:"closed,omitempty"`
	Idle         int            `json:"idle,omitempty"`
	Zone         string         `json:"zone,omitempty"`
	Aggregates   []string       `json:"aggregates,omitempty"`
	Traits       []string       `json:"traits,omitempty"`
	Capacity     capacity       `json:"capacity"`
	FlopsPerWatt float64        `json:"flops_per_watt,omitempty"`
	Draw         powerDraw      `json:"draw"`
	BootSeconds  int64          `json:"boot_seconds,omitempty"`
	States       []energy.State `json:"states,omitempty"`
	Claimed      span.Instant   `json:"claimed,omitempty"`
	Stays        string         `json:"stays,omitempty"`
	Stuck        string         `json:"stuck,omitempty"`
	Hold         *powerHold     `json:"hold,omitempty"`
	LastOn       span.Instant   `json:"last_on,omitempty"`
	LastOff      span.Instant   `json:"last_off,omitempty"`
	Switches     int            `json:"switches,omitempty"`
}

type capacity struct {
	VCPUs    int64            `json:"vcpus"`
	MemoryMB int64            `json:"memory_mb"`
	DiskGB   int64            `json:"disk_gb"`
	Custom   map[string]int64 `json:"custom,omitempty"`
}

type powerDraw struct {
	Idle       float64 `json:"idle,omitempty"`
	Full       float64 `json:"full,omitempty"`
	Standby    float64 `json:"standby,omitempty"`
	Off        float64 `json:"off,omitempty"`
	BootJoules float64 `json:"boot_joules,omitempty"`
}

func energyReportOf(r energy.Report) energyReport {
	return energyReport{
		At: r.At, Controller: r.Controller, Halt: r.Halt, Hosts: converted(r.Hosts, observedHostOf),
		Alarms: converted(r.Alarms, func(a energy.Alarm) energyAlarm { return energyAlarm(a) }),
		Agents: converted(r.Agents, func(a energy.Agent) energyAgent { return energyAgent(a) }),
	}
}

func (r *energyReport) report() energy.Report {
	return energy.Report{
		At: r.At, Controller: r.Controller, Halt: r.Halt, Hosts: converted(r.Hosts, observedHost.observed),
		Alarms: converted(r.Alarms, func(a energyAlarm) energy.Alarm { return energy.Alarm(a) }),
		Agents: converted(r.Agents, func(a energyAgent) energy.Agent { return energy.Agent(a) }),
	}
}

func observedHostOf(o energy.Observed) observedHost {
	reading := powerReading(o.Reading)
	reading.Watts = finite(reading.Watts)
	return observedHost{
		Machine: observedMachineOf(o.Machine), Reading: reading, Agent: o.Agent, Driver: o.Driver, Mode: o.Mode, Explanation: o.Explanation,
	}
}

func (o observedHost) observed() energy.Observed {
	return energy.Observed{
		Machine: o.Machine.machine(), Reading: energy.Reading(o.Reading), Agent: o.Agent, Driver: o.Driver, Mode: o.Mode, Explanation: o.Explanation,
	}
}

func observedMachineOf(m energy.Machine) observedMachine {
	return observedMachine{
		Name: m.Name, Phase: m.Phase, Busy: m.Busy, Closed: m.Closed, Idle: m.Idle, Zone: m.Zone, Aggregates: m.Aggregates, Traits: m.Traits,
		Capacity: capacity(m.Capacity), FlopsPerWatt: finite(m.FlopsPerWatt), BootSeconds: m.BootSeconds, States: m.States,
		Draw:    powerDrawOf(m.Draw),
		Claimed: m.Claimed, Stays: m.Stays, Stuck: m.Stuck, Hold: (*powerHold)(m.Hold), LastOn: m.LastOn, LastOff: m.LastOff, Switches: m.Switches,
	}
}

func (m observedMachine) machine() energy.Machine {
	return energy.Machine{
		Name: m.Name, Phase: m.Phase, Busy: m.Busy, Closed: m.Closed, Idle: m.Idle, Zone: m.Zone, Aggregates: m.Aggregates, Traits: m.Traits,
		Capacity: resource.Vector(m.Capacity), FlopsPerWatt: m.FlopsPerWatt, BootSeconds: m.BootSeconds, States: m.States,
		Draw: energy.Draw(m.Draw), Claimed: m.Claimed, Stays: m.Stays, Stuck: m.Stuck, Hold: (*energy.Hold)(m.Hold),
		LastOn: m.LastOn, LastOff: m.LastOff, Switches: m.Switches,
	}
}

func powerDrawOf(d energy.Draw) powerDraw {
	return powerDraw{finite(d.Idle), finite(d.Full), finite(d.Standby), finite(d.Off), finite(d.BootJoules)}
}
