package store

import (
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// powerRecord is an energy.Record as it is stored, without its host.
type powerRecord struct {
	Phase      energy.Phase   `json:"phase,omitempty"`
	Since      span.Instant   `json:"since"`
	Reason     string         `json:"reason,omitempty"`
	Target     energy.State   `json:"target,omitempty"`
	Operation  string         `json:"operation,omitempty"`
	Urgent     bool           `json:"urgent,omitempty"`
	Testing    bool           `json:"testing,omitempty"`
	Closed     span.Instant   `json:"closed,omitempty"`
	Reported   span.Instant   `json:"reported,omitempty"`
	Begun      span.Instant   `json:"begun,omitempty"`
	Order      *powerOrder    `json:"order,omitempty"`
	Number     int64          `json:"number,omitempty"`
	Attempt    int            `json:"attempt,omitempty"`
	OffFailed  int            `json:"off_failed,omitempty"`
	RetryAt    span.Instant   `json:"retry_at,omitempty"`
	Oddly      int            `json:"oddly,omitempty"`
	Heard      int            `json:"heard,omitempty"`
	Down       bool           `json:"down,omitempty"`
	Found      bool           `json:"found,omitempty"`
	Taken      bool           `json:"taken,omitempty"`
	LastOn     span.Instant   `json:"last_on,omitempty"`
	LastOff    span.Instant   `json:"last_off,omitempty"`
	Boots      []int64        `json:"boots,omitempty"`
	Draw       powerDraw      `json:"draw,omitzero"`
	Switches   []span.Instant `json:"switches,omitempty"`
	Hold       *powerHold     `json:"hold,omitempty"`
	Proof      *powerProof    `json:"proof,omitempty"`
	Quarantine string         `json:"quarantine,omitempty"`
	Mode       energy.Mode    `json:"mode,omitempty"`
}

type powerOrder struct {
	ID       string       `json:"id"`
	Epoch    int64        `json:"epoch"`
	Number   int64        `json:"number"`
	Host     string       `json:"host"`
	State    energy.State `json:"state"`
	Hard     bool         `json:"hard,omitempty"`
	Patience int64        `json:"patience,omitempty"`
	Deadline span.Instant `json:"deadline"`
}

type powerHold struct {
	Action energy.Action `json:"action"`
	Reason string        `json:"reason,omitempty"`
	By     string        `json:"by"`
	At     span.Instant  `json:"at"`
	Until  span.Instant  `json:"until,omitempty"`
}

type powerProof struct {
	At      span.Instant `json:"at"`
	Woke    bool         `json:"woke"`
	Seconds int64        `json:"seconds,omitempty"`
	Reason  string       `json:"reason,omitempty"`
}

func powerRecordOf(r energy.Record) powerRecord {
	return powerRecord{
		Phase: r.Phase, Since: r.Since, Reason: r.Reason, Target: r.Target, Operation: r.Operation, Urgent: r.Urgent,
		Testing: r.Testing, Closed: r.Closed, Reported: r.Reported, Begun: r.Begun, Order: (*powerOrder)(r.Order), Number: r.Number,
		Attempt: r.Attempt, OffFailed: r.OffFailed, RetryAt: r.RetryAt, Oddly: r.Oddly, Heard: r.Heard, Down: r.Down, Found: r.Found, Taken: r.Taken,
		LastOn: r.LastOn, LastOff: r.LastOff, Boots: r.Boots, Switches: r.Switches, Draw: powerDrawOf(r.Draw), Hold: (*powerHold)(r.Hold),
		Proof: (*powerProof)(r.Proof), Quarantine: r.Quarantine, Mode: r.Mode,
	}
}

func (p *powerRecord) record(host string) energy.Record {
	return energy.Record{
		Host: host, Phase: p.Phase, Since: p.Since, Reason: p.Reason, Target: p.Target, Operation: p.Operation, Urgent: p.Urgent,
		Testing: p.Testing, Closed: p.Closed, Reported: p.Reported, Begun: p.Begun, Order: (*energy.Order)(p.Order), Number: p.Number,
		Attempt: p.Attempt, OffFailed: p.OffFailed, RetryAt: p.RetryAt, Oddly: p.Oddly, Heard: p.Heard, Down: p.Down, Found: p.Found, Taken: p.Taken,
		LastOn: p.LastOn, LastOff: p.LastOff, Boots: p.Boots, Switches: p.Switches, Draw: energy.Draw(p.Draw), Hold: (*energy.Hold)(p.Hold),
		Proof: (*energy.Proof)(p.Proof), Quarantine: p.Quarantine, Mode: p.Mode,
	}
}

// energySettings is an energy.Settings as it is stored.
type energySettings struct {
	Mode        energy.Mode            `json:"mode,omitempty"`
	Aggregates  map[string]energy.Mode `json:"aggregates,omitempty"`
	Stopped     *energyStop            `json:"stopped,omitempty"`
	Breaker     *energyStop            `json:"breaker,omitempty"`
	FailedBoots int                    `json:"failed_boots,omitempty"`
	PlanID      string                 `json:"plan_id,omitempty"`
	Plan        *energyPlan            `json:"plan,omitempty"`
	Approved    *energyApproval        `json:"approved,omitempty"`
	Savings     energySavings          `json:"savings"`
}

type energyStop struct {
	By     string       `json:"by"`
	Reason string       `json:"reason,omitempty"`
	At     span.Instant `json:"at"`
}

type energyApproval struct {
	Plan  string       `json:"plan"`
	By    string       `json:"by"`
	At    span.Instant `json:"at"`
	Begun bool         `json:"begun,omitempty"`
}

type energySavings struct {
	Since           span.Instant `json:"since"`
	Until           span.Instant `json:"until"`
	HostSeconds     int64        `json:"host_seconds"`
	CoreSeconds     int64        `json:"core_seconds"`
	IdleCoreSeconds int64        `json:"idle_core_seconds"`
	Joules          float64      `json:"joules"`
	Unknown         int64        `json:"unknown"`
	Boots           int64        `json:"boots"`
	Delay           float64      `json:"delay"`
}

type energyPlan struct {
	At       span.Instant   `json:"at"`
	Forecast int            `json:"forecast"`
	Reserved int            `json:"reserved"`
	On       int            `json:"on"`
	Required int            `json:"required"`
	Spare    int            `json:"spare"`
	Switches []energySwitch `json:"switches,omitempty"`
	Kept     []energyKept   `json:"kept,omitempty"`
	Short    string         `json:"short,omitempty"`
}

type energySwitch struct {
	Host   string       `json:"host"`
	To     energy.State `json:"to"`
	Reason string       `json:"reason"`
	Urgent bool         `json:"urgent,omitempty"`
}

type energyKept struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
}

func energySettingsOf(e energy.Settings) energySettings {
	out := energySettings{
		Mode: e.Mode, Aggregates: e.Aggregates, Stopped: (*energyStop)(e.Stopped), Breaker: (*energyStop)(e.Breaker),
		FailedBoots: e.FailedBoots, PlanID: e.PlanID, Approved: (*energyApproval)(e.Approved), Savings: energySavings(e.Savings),
	}
	out.Savings.Joules, out.Savings.Delay = finite(e.Savings.Joules), finite(e.Savings.Delay)
	if p := e.Plan; p != nil {
		out.Plan = &energyPlan{
			At: p.At, Forecast: p.Forecast, Reserved: p.Reserved, On: p.On, Required: p.Required, Spare: p.Spare, Short: p.Short,
			Switches: converted(p.Switches, func(s energy.Switch) energySwitch { return energySwitch(s) }),
			Kept:     converted(p.Kept, func(k energy.Kept) energyKept { return energyKept(k) }),
		}
	}
	return out
}

func (e *energySettings) settings() energy.Settings {
	out := energy.Settings{
		Mode: e.Mode, Aggregates: e.Aggregates, Stopped: (*energy.Stop)(e.Stopped), Breaker: (*energy.Stop)(e.Breaker),
		FailedBoots: e.FailedBoots, PlanID: e.PlanID, Approved: (*energy.Approval)(e.Approved), Savings: energy.Savings(e.Savings),
	}
	if p := e.Plan; p != nil {
		out.Plan = &energy.Plan{
			At: p.At, Forecast: p.Forecast, Reserved: p.Reserved, On: p.On, Required: p.Required, Spare: p.Spare, Short: p.Short,
			Switches: converted(p.Switches, func(s energySwitch) energy.Switch { return energy.Switch(s) }),
			Kept:     converted(p.Kept, func(k energyKept) energy.Kept { return energy.Kept(k) }),
		}
	}
	return out
}
