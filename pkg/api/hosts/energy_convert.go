// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"math"
	"time"

	"github.com/almanac-cloud/almanac/pkg/api/serving"
	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/energy/controller"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// latestHold is the latest end of a manual order.
var latestHold = span.At(time.Date(serving.LastYear, 12, 31, 23, 59, 59, 0, time.UTC))

// baseline is the sentence that describes the reference of the savings.
const baseline = "every host that was off or in standby would have been on and idle in that time; the energy of its boots is subtracted"

const joulesInKWh = 3.6e6

// number returns x, or 0 if JSON cannot represent x.
func number(x float64) float64 {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0
	}
	return x
}

func energyStatus(s controller.Status, hosts []controller.HostStatus) v1.Energy {
	out := v1.Energy{
		Mode: v1.EnergyMode(s.Settings.Mode), EffectiveMode: string(s.Mode), ConfiguredMode: string(s.Configured),
		Aggregates: map[string]string{}, Hosts: map[string]string{}, Stopped: energyStop(s.Settings.Stopped), Breaker: energyStop(s.Settings.Breaker),
		FailedBoots: s.Settings.FailedBoots, Halt: s.Report.Halt, Stale: s.Stale, MeasuredAt: v1.TimeOf(s.Report.At), Controller: s.Report.Controller,
		Alarms: []v1.EnergyAlarm{}, Agents: []v1.EnergyAgent{}, Phases: map[string]int{}, Savings: energySavings(s.Settings.Savings),
	}
	for name, mode := range s.Settings.Aggregates {
		out.Aggregates[name] = string(mode)
	}
	for _, p := range energy.PhaseWords {
		out.Phases[p] = 0
	}
	for i := range hosts {
		h := &hosts[i]
		out.Phases[h.Phase()]++
		if h.Record.Mode != "" {
			out.Hosts[h.Name()] = string(h.Record.Mode)
		}
	}
	for _, a := range s.Report.Alarms {
		out.Alarms = append(out.Alarms, v1.EnergyAlarm{Kind: string(a.Kind), Host: a.Host, Text: a.Text, Since: a.Since.Time()})
	}
	for _, a := range s.Report.Agents {
		out.Agents = append(out.Agents, v1.EnergyAgent{Name: a.Name, Hosts: a.Hosts, Seen: v1.TimeOf(a.Seen), Lost: a.Lost})
	}
	return out
}

func energyStop(s *energy.Stop) *v1.EnergyStop {
	if s == nil {
		return nil
	}
	return &v1.EnergyStop{By: s.By, At: s.At.Time(), Reason: s.Reason}
}

func energySavings(s energy.Savings) v1.EnergySavings {
	return v1.EnergySavings{
		Since: v1.TimeOf(s.Since), Until: v1.TimeOf(s.Until), Baseline: baseline, KWh: number(s.Joules) / joulesInKWh, HostHours: v1.Hours(s.HostSeconds),
		UnknownHostHours: v1.Hours(s.Unknown), Boots: s.Boots, ResIdle: v1.Hours(s.IdleCoreSeconds), ESavings: v1.Hours(s.CoreSeconds), DelayReq: number(s.Delay),
	}
}

// energyPlan returns the plan in the settings, which must contain one.
func energyPlan(s energy.Settings) v1.EnergyPlan {
	p := s.Plan
	out := v1.EnergyPlan{
		ID: s.PlanID, At: p.At.Time(), Forecast: p.Forecast, Reserved: p.Reserved, Required: p.Required, Spare: p.Spare, On: p.On, Short: p.Short,
		Switches: []v1.EnergySwitch{}, Kept: []v1.EnergyKept{},
	}
	for _, w := range p.Switches {
		out.Switches = append(out.Switches, v1.EnergySwitch{Host: w.Host, To: string(w.To), Reason: w.Reason, Urgent: w.Urgent})
	}
	for _, k := range p.Kept {
		out.Kept = append(out.Kept, v1.EnergyKept(k))
	}
	if a := s.Approved; a != nil && a.Plan == s.PlanID {
		out.Approved = &v1.EnergyApproval{By: a.By, At: a.At.Time(), Begun: a.Begun}
	}
	return out
}

// energyHost returns a host without its history.
func energyHost(h *controller.HostStatus) v1.EnergyHost {
	r, o := &h.Record, &h.Observed
	out := v1.EnergyHost{
		Name: h.Name(), Phase: h.Phase(), Since: v1.TimeOf(r.Since), Reason: r.Reason, Target: string(r.Target), Operation: r.Operation, Urgent: r.Urgent,
		State: string(o.Reading.State), Watts: number(o.Reading.Watts), ReadAt: v1.TimeOf(o.Reading.At), Untouchable: o.Reading.Untouchable, Problem: o.Reading.Problem,
		Agent: o.Agent, Driver: o.Driver, States: fault.Texts(o.Machine.States),
		Busy: o.Machine.Busy, Idle: o.Machine.Idle, ReservedFrom: v1.TimeOf(o.Machine.Claimed), BootSeconds: o.Machine.BootSeconds, Boots: append([]int64{}, r.Boots...),
		LastOn: v1.TimeOf(r.LastOn), LastOff: v1.TimeOf(r.LastOff), Quarantine: r.Quarantine,
		Mode: v1.EnergyMode(r.Mode), EffectiveMode: string(o.Mode), Explanation: append([]string{}, o.Explanation...),
		Outcome: h.Outcome,
	}
	if p := r.LastWakeTest; p != nil {
		out.LastWakeTest = &v1.EnergyWakeTest{At: p.At.Time(), Woke: p.Woke, Seconds: p.Seconds, Reason: p.Reason}
	}
	if b := r.Hold; b != nil {
		out.Hold = &v1.EnergyHold{Action: string(b.Action), Reason: b.Reason, By: b.By, At: b.At.Time(), Until: v1.TimeOf(b.Until)}
	}
	return out
}

func energyEntries(list []energy.Entry) []v1.EnergyEntry {
	out := make([]v1.EnergyEntry, len(list))
	for i, e := range list {
		out[i] = v1.EnergyEntry{ID: e.ID, At: e.At.Time(), Host: e.Host, Kind: string(e.Kind), By: e.By, Operation: e.Operation, Text: e.Text}
	}
	return out
}
