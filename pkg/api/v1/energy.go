package v1

import "time"

// Energy is the answer to GET and PATCH /v1/energy: how the energy controller is.
type Energy struct {
	// Mode is what an operator has set, null where that is ConfiguredMode, EffectiveMode
	// what is in force where neither a host nor an aggregate has a mode of its own.
	Mode           EnergyMode `json:"mode"`
	EffectiveMode  string     `json:"effective_mode"`
	ConfiguredMode string     `json:"configured_mode"`
	// Aggregates and Hosts have the modes of their own.
	Aggregates map[string]string `json:"aggregates"`
	Hosts      map[string]string `json:"hosts"`
	// Stopped: an operator has stopped the switching off; Breaker: too many boots failed.
	Stopped     *EnergyStop `json:"stopped"`
	Breaker     *EnergyStop `json:"breaker"`
	FailedBoots int         `json:"failed_boots"`
	// Halt says why nothing is switched off now, Late why what is told here may be old.
	Halt       string         `json:"halt"`
	Late       string         `json:"late"`
	MeasuredAt *time.Time     `json:"measured_at"`
	Controller string         `json:"controller"` // the process that measured
	Alarms     []EnergyAlarm  `json:"alarms"`
	Agents     []EnergyAgent  `json:"agents"`
	Phases     map[string]int `json:"phases"` // hosts by phase
	Savings    EnergySavings  `json:"savings"`
}

// EnergyStop says who stopped something, when and why.
type EnergyStop struct {
	By     string    `json:"by"`
	At     time.Time `json:"at"`
	Reason string    `json:"reason"`
}

// EnergyAlarm is something that an operator has to see to. Host is empty where it is
// about all.
type EnergyAlarm struct {
	Kind  string    `json:"kind"`
	Host  string    `json:"host"`
	Text  string    `json:"text"`
	Since time.Time `json:"since"`
}

// EnergyAgent is a process that switches machines.
type EnergyAgent struct {
	Name  string     `json:"name"`
	Hosts int        `json:"hosts"`
	Seen  *time.Time `json:"seen"`
	Lost  bool       `json:"lost"`
}

// EnergySavings are what switching off has saved, against the Baseline, a sentence.
type EnergySavings struct {
	Since     *time.Time `json:"since"`
	Until     *time.Time `json:"until"`
	Baseline  string     `json:"baseline"`
	KWh       float64    `json:"kwh"`
	HostHours float64    `json:"host_hours"`
	// UnknownHostHours are those of hosts whose draw is not known: KWh has nothing of them.
	UnknownHostHours float64 `json:"unknown_host_hours"`
	Boots            int64   `json:"boots"`
	// ResIdle and ESavings are core-hours, on and unused, and off; DelayReq is the sum of
	// cores × boot time / duration over reservations that a boot delayed (paper 004).
	ResIdle  float64 `json:"res_idle"`
	ESavings float64 `json:"e_savings"`
	DelayReq float64 `json:"delay_req"`
}

// EnergyChange is the body of PATCH /v1/energy. What is nil stays; an empty mode takes
// that one away.
type EnergyChange struct {
	Mode       *EnergyMode           `json:"mode,omitempty"`
	Aggregates map[string]EnergyMode `json:"aggregates,omitempty"`
	Hosts      map[string]EnergyMode `json:"hosts,omitempty"`
	Stop       *bool                 `json:"stop,omitempty"`
	Rearm      bool                  `json:"rearm,omitempty"`
	Reason     string                `json:"reason,omitempty"`
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
	// Short says what could not be met; empty where all is.
	Short    string          `json:"short"`
	Switches []EnergySwitch  `json:"switches"`
	Kept     []EnergyKept    `json:"kept"`
	Approved *EnergyApproval `json:"approved"`
}

// EnergySwitch is one host to be switched.
type EnergySwitch struct {
	Host   string `json:"host"`
	To     string `json:"to"`
	Reason string `json:"reason"`
	Urgent bool   `json:"urgent"` // it waits for no approval
}

// EnergyKept is an idle host that stays on.
type EnergyKept struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
}

// EnergyApproval says who approved a plan. Begun: it is being carried out, or has been.
type EnergyApproval struct {
	By    string    `json:"by"`
	At    time.Time `json:"at"`
	Begun bool      `json:"begun"`
}

// EnergyApprove is the body of POST /v1/energy/plan: the id of the plan.
type EnergyApprove struct {
	Approve string `json:"approve"`
}

// EnergyHosts is the answer to GET /v1/energy/hosts, one page; Next is the marker of the
// next.
type EnergyHosts struct {
	Hosts []EnergyHost `json:"hosts"`
	Next  Marker       `json:"next"`
}

// EnergyHost is a host as the energy controller knows it. Times are null where they are
// not known. History, the last entries of its audit, the latest first, is given where one
// host is asked for.
type EnergyHost struct {
	Name      string     `json:"name"`
	Phase     string     `json:"phase"`
	Since     *time.Time `json:"since"`
	Reason    string     `json:"reason"`
	Target    string     `json:"target"` // the state that it is brought to, or has
	Operation string     `json:"operation"`
	Urgent    bool       `json:"urgent"`

	State       string     `json:"state"` // as it was read; empty is not known
	Watts       float64    `json:"watts"` // 0 is not known
	ReadAt      *time.Time `json:"read_at"`
	Untouchable string     `json:"untouchable"` // why nobody may switch it now
	Problem     string     `json:"problem"`     // why it could not be read
	Agent       string     `json:"agent"`
	Driver      string     `json:"driver"`
	States      []string   `json:"states"` // that it can be brought to

	Busy         bool       `json:"busy"`
	Idle         int        `json:"idle"` // measurements without a break
	ReservedFrom *time.Time `json:"reserved_from"`
	BootSeconds  int64      `json:"boot_seconds"`
	Boots        []int64    `json:"boots"`
	LastOn       *time.Time `json:"last_on"`
	LastOff      *time.Time `json:"last_off"`

	LastWakeTest *EnergyWakeTest `json:"last_wake_test"`
	Hold         *EnergyHold     `json:"hold"`
	Quarantine   string          `json:"quarantine"`
	// Mode is its own, null where it has none, EffectiveMode what is in force.
	Mode          EnergyMode `json:"mode"`
	EffectiveMode string     `json:"effective_mode"`
	Explanation   []string   `json:"explanation"`
	// Outcome is there in the answer to an order: what it comes to, or why it waits.
	Outcome string        `json:"outcome,omitempty"`
	History []EnergyEntry `json:"history,omitzero"`
}

// EnergyWakeTest is whether a host woke when it was last ordered on.
type EnergyWakeTest struct {
	At      time.Time `json:"at"`
	Woke    bool      `json:"woke"`
	Seconds int64     `json:"seconds"`
	Reason  string    `json:"reason"`
}

// EnergyHold is a manual order; Until is null where it is for ever.
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

// EnergyForeseen is what an order for a host would come to; dry_run asks for it.
type EnergyForeseen struct {
	Name    string `json:"name"`
	Phase   string `json:"phase"`
	Outcome string `json:"outcome"` // a sentence
}

// EnergyAudit is the answer to GET /v1/energy/audit, the latest entry first. Next is where
// the page before begins (before); null where there is none.
type EnergyAudit struct {
	Entries []EnergyEntry `json:"entries"`
	Next    *int64        `json:"next"`
}

// EnergyEntry is one line of the audit. Host is empty where it is about all.
type EnergyEntry struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Host      string    `json:"host"`
	Kind      string    `json:"kind"`
	By        string    `json:"by"`
	Operation string    `json:"operation"`
	Text      string    `json:"text"`
}

// EnergyDemands is the answer to GET /v1/energy/demand, in the order of time.
type EnergyDemands struct {
	Demand []EnergyDemand `json:"demand"`
}

// EnergyDemand is how many hosts were in use at a time, and how many reserved.
type EnergyDemand struct {
	At       time.Time `json:"at"`
	InUse    int       `json:"in_use"`
	Reserved int       `json:"reserved"`
}
