// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Energy is the answer to GET and PATCH /v1/energy: the state of the energy controller.
type Energy struct {
	// Mode is the mode that an operator has set; null means ConfiguredMode. EffectiveMode applies
	// to every host that has no mode of its own or of its aggregates.
	Mode           EnergyMode `json:"mode"`
	EffectiveMode  string     `json:"effective_mode"`
	ConfiguredMode string     `json:"configured_mode"`
	// Aggregates and Hosts are the modes set for single aggregates and hosts, by name.
	Aggregates map[string]string `json:"aggregates"`
	Hosts      map[string]string `json:"hosts"`
	// Stopped is set if an operator has stopped the switching off of all hosts, Breaker if too many
	// boots failed; otherwise they are null.
	Stopped     *EnergyStop `json:"stopped"`
	Breaker     *EnergyStop `json:"breaker"`
	FailedBoots int         `json:"failed_boots"`
	// Halt is the reason why nothing is switched off now, Stale the reason why this answer may be
	// out of date; both may be empty.
	Halt       string         `json:"halt"`
	Stale      string         `json:"stale"`
	MeasuredAt *time.Time     `json:"measured_at"`
	Controller string         `json:"controller"` // the process that made the measurement
	Alarms     []EnergyAlarm  `json:"alarms"`
	Agents     []EnergyAgent  `json:"agents"`
	Phases     map[string]int `json:"phases"` // hosts by phase
	Savings    EnergySavings  `json:"savings"`
}

// EnergyStop records who stopped the switching off of all hosts, when and why. By is "almanac" if
// too many boots failed.
type EnergyStop struct {
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// EnergyAlarm is something that requires an operator's attention. Host is empty if it concerns all
// hosts.
type EnergyAlarm struct {
	Kind  string    `json:"kind"`
	Host  string    `json:"host"`
	Text  string    `json:"text"`
	Since time.Time `json:"since"`
}

// EnergyAgent is a power agent.
type EnergyAgent struct {
	Name  string     `json:"name"`
	Hosts int        `json:"hosts"`
	Seen  *time.Time `json:"seen"`
	Lost  bool       `json:"lost"`
}

// EnergySavings are what switching off has saved compared with Baseline, a sentence.
type EnergySavings struct {
	Since     *time.Time `json:"since"`
	Until     *time.Time `json:"until"`
	Baseline  string     `json:"baseline"`
	KWh       float64    `json:"kwh"`
	HostHours float64    `json:"host_hours"`
	// UnknownHostHours are the host-hours of hosts whose power is unknown; KWh does not include
	// them.
	UnknownHostHours float64 `json:"unknown_host_hours"`
	Boots            int64   `json:"boots"`
	// ResIdle and ESavings are core-hours: on and unused, and off. DelayReq is the sum of cores ×
	// boot time / duration over the reservations that a boot delayed (paper 004).
	ResIdle  float64 `json:"res_idle"`
	ESavings float64 `json:"e_savings"`
	DelayReq float64 `json:"delay_req"`
}

// EnergyChange is the body of PATCH /v1/energy. Nil fields change nothing; an empty mode removes
// the mode.
type EnergyChange struct {
	Mode         *EnergyMode           `json:"mode,omitempty"`
	Aggregates   map[string]EnergyMode `json:"aggregates,omitempty"`
	Hosts        map[string]EnergyMode `json:"hosts,omitempty"`
	Stop         *bool                 `json:"stop,omitempty"`
	ResetBreaker bool                  `json:"reset_breaker,omitempty"`
	Reason       string                `json:"reason,omitempty"`
}

// EnergyPlan is the answer to GET and POST /v1/energy/plan.
type EnergyPlan struct {
	ID       string    `json:"id"`
	At       time.Time `json:"at"`
	Forecast int       `json:"forecast"`
	Reserved int       `json:"reserved"`
	Required int       `json:"required"`
	Spare    int       `json:"spare"`
	On       int       `json:"on"`
	// Short states which requirements the plan cannot meet; empty if it meets all.
	Short    string          `json:"short"`
	Switches []EnergySwitch  `json:"switches"`
	Kept     []EnergyKept    `json:"kept"`
	Approved *EnergyApproval `json:"approved"`
}

// EnergySwitch is one host that the plan switches.
type EnergySwitch struct {
	Host   string `json:"host"`
	To     string `json:"to"`
	Reason string `json:"reason"`
	Urgent bool   `json:"urgent"` // done without approval
}

// EnergyKept is an idle host that stays on.
type EnergyKept struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
}

// EnergyApproval records who approved a plan. Begun is true if the plan is being or has been
// carried out.
type EnergyApproval struct {
	By    string    `json:"by"`
	At    time.Time `json:"at"`
	Begun bool      `json:"begun"`
}

// EnergyApprove is the body of POST /v1/energy/plan: the id of the plan.
type EnergyApprove struct {
	Approve string `json:"approve"`
}

// EnergyHosts is one page of the answer to GET /v1/energy/hosts; Next is the marker of the next
// page.
type EnergyHosts struct {
	Hosts []EnergyHost `json:"hosts"`
	Next  Marker       `json:"next"`
}

// EnergyHost is the state of a host in the energy controller. Unknown times are null. History, the
// last entries of the host's audit, latest first, is only in answers about one host.
type EnergyHost struct {
	Name      string     `json:"name"`
	Phase     string     `json:"phase"`
	Since     *time.Time `json:"since"`
	Reason    string     `json:"reason"`
	Target    string     `json:"target"` // the state that the host is brought to, or has
	Operation string     `json:"operation"`
	Urgent    bool       `json:"urgent"`

	State       string     `json:"state"` // as last read; empty if unknown
	Watts       float64    `json:"watts"` // 0 if unknown
	ReadAt      *time.Time `json:"read_at"`
	Untouchable string     `json:"untouchable"` // why nobody may switch the host now
	Problem     string     `json:"problem"`     // why the host could not be read
	Agent       string     `json:"agent"`
	Driver      string     `json:"driver"`
	States      []string   `json:"states"` // the states that the host can be brought to

	Busy         bool       `json:"busy"`
	Idle         int        `json:"idle"` // consecutive measurements
	ReservedFrom *time.Time `json:"reserved_from"`
	BootSeconds  int64      `json:"boot_seconds"`
	Boots        []int64    `json:"boots"`
	LastOn       *time.Time `json:"last_on"`
	LastOff      *time.Time `json:"last_off"`

	LastWakeTest *EnergyWakeTest `json:"last_wake_test"`
	Hold         *EnergyHold     `json:"hold"`
	Quarantine   string          `json:"quarantine"`
	// Mode is the host's own, null if it has none; EffectiveMode is the one in force.
	Mode          EnergyMode `json:"mode"`
	EffectiveMode string     `json:"effective_mode"`
	Explanation   []string   `json:"explanation"`
	// Outcome is in the answer to an order: the effect of the order, or why it waits.
	Outcome string        `json:"outcome,omitempty"`
	History []EnergyEntry `json:"history,omitzero"`
}

// EnergyWakeTest states whether a host woke when it was last ordered on.
type EnergyWakeTest struct {
	At      time.Time `json:"at"`
	Woke    bool      `json:"woke"`
	Seconds int64     `json:"seconds"`
	Reason  string    `json:"reason"`
}

// EnergyHold is a manual order; Until is null if it has no end.
type EnergyHold struct {
	Action string     `json:"action"`
	Reason string     `json:"reason"`
	By     string     `json:"by"`
	At     time.Time  `json:"at"`
	Until  *time.Time `json:"until"`
}

// EnergyOrder is the body of POST /v1/energy/hosts/{name}.
type EnergyOrder struct {
	Action string `json:"action"` // on, off, standby, release or test
	Reason string `json:"reason,omitempty"`
	Until  *Until `json:"until,omitempty"`
}

// EnergyForeseen is the predicted effect of an order for a host, the answer to dry_run.
type EnergyForeseen struct {
	Name    string `json:"name"`
	Phase   string `json:"phase"`
	Outcome string `json:"outcome"` // a sentence
}

// EnergyAudit is the answer to GET /v1/energy/audit, latest entry first. Next is the value of
// before for the next page; null on the last page.
type EnergyAudit struct {
	Entries []EnergyEntry `json:"entries"`
	Next    *int64        `json:"next"`
}

// EnergyEntry is one line of the audit. Host is empty if it concerns all hosts.
type EnergyEntry struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Host      string    `json:"host"`
	Kind      string    `json:"kind"`
	By        string    `json:"by"`
	Operation string    `json:"operation"`
	Text      string    `json:"text"`
}

// EnergyDemands is the answer to GET /v1/energy/demand, ordered by time.
type EnergyDemands struct {
	Demand []EnergyDemand `json:"demand"`
}

// EnergyDemand is how many hosts were in use, and how many reserved, at one time.
type EnergyDemand struct {
	At       time.Time `json:"at"`
	InUse    int       `json:"in_use"`
	Reserved int       `json:"reserved"`
}
