// SPDX-License-Identifier: Apache-2.0

package whatif

import (
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/almanac-cloud/almanac/pkg/energy"
	"github.com/almanac-cloud/almanac/pkg/fault"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// PowerQuestion asks which hosts are switched on and off (paper 004), without safety limits.
type PowerQuestion struct {
	Now int64 `json:"now"`
	// Horizon is how many seconds ahead reservations count; nil means the paper's value.
	Horizon *int64 `json:"horizon"`
	// IdleNeeded is the number of consecutive measurements in which a host must have been idle
	// before it is switched off; nil means the paper's value.
	IdleNeeded *int        `json:"idle_needed"`
	Hosts      []PowerHost `json:"hosts"`
	// Forecast is the number of hosts that will be in use, including those in use now.
	Forecast int `json:"forecast"`
	// Reserved are the hosts with a reservation that is active or begins within the horizon.
	Reserved []string `json:"reserved"`
}

// PowerHost is a host that is on or off. Idle is the number of measurements for which a host that
// is on has been idle; 0 means busy.
type PowerHost struct {
	Name         string  `json:"name"`
	On           bool    `json:"on"`
	Idle         int     `json:"idle"`
	FlopsPerWatt float64 `json:"flops_per_watt"` // 0 is unknown
}

// PowerAnswer contains the hosts to switch, in the order of switching, and the reasons by host.
// Idle hosts that stay on have a reason too.
type PowerAnswer struct {
	On      []string          `json:"on"`
	Off     []string          `json:"off"`
	Reasons map[string]string `json:"reasons"`
}

// Power answers the question in r. Errors are Invalid faults that name the field.
func Power(r io.Reader) (PowerAnswer, error) {
	var q PowerQuestion
	if err := read(r, &q); err != nil {
		return PowerAnswer{}, err
	}
	rules := energy.Paper()
	if q.Horizon == nil {
		q.Horizon = new(rules.Horizon)
	}
	if q.IdleNeeded == nil {
		q.IdleNeeded = new(rules.IdleNeeded)
	}
	situation, err := q.situation()
	if err != nil {
		return PowerAnswer{}, err
	}
	rules.Horizon, rules.IdleNeeded = *q.Horizon, *q.IdleNeeded
	return q.answer(rules.Plan(situation)), nil
}

// situation validates the question and returns its situation.
func (q *PowerQuestion) situation() (energy.Situation, error) {
	s := energy.Situation{Now: span.Instant(q.Now), Forecast: q.Forecast}
	switch n := len(q.Hosts); {
	case outOfRange(q.Now):
		return s, fault.Field("now", "is out of range")
	case *q.Horizon < 0 || outOfRange(*q.Horizon):
		return s, fault.Field("horizon", "must be from 0 to 2^53")
	case *q.IdleNeeded < 0 || *q.IdleNeeded > mostOfAny:
		return s, fault.Field("idle_needed", "must be from 0 to %d", mostOfAny)
	case q.Forecast < 0 || q.Forecast > mostOfAny:
		return s, fault.Field("forecast", "must be from 0 to %d", mostOfAny)
	case n < 1 || n > mostHosts:
		return s, fault.Field("hosts", "must be from 1 to %d of them", mostHosts)
	}
	places := make(map[string]int, len(q.Hosts))
	for i, h := range q.Hosts {
		path, key := fmt.Sprintf("hosts[%d]", i), strings.ToLower(h.Name) // Nova ignores case
		_, twice := places[key]
		switch {
		case h.Name == "":
			return s, fault.Field(path+".name", "is required")
		case twice:
			return s, fault.Field(path+".name", "%q is the name of two hosts", h.Name)
		case h.Idle < 0 || h.Idle > mostOfAny:
			return s, fault.Field(path+".idle", "must be from 0 to %d", mostOfAny)
		case h.FlopsPerWatt < 0 || math.IsInf(h.FlopsPerWatt, 0):
			return s, fault.Field(path+".flops_per_watt", "must be 0 or more")
		}
		places[key] = i
		s.Machines = append(s.Machines, h.machine())
	}
	for i, name := range q.Reserved {
		path := fmt.Sprintf("reserved[%d]", i)
		place, known := places[strings.ToLower(name)]
		if !known {
			return s, fault.Field(path, "there is no host %q among hosts", name)
		}
		if s.Machines[place].Claimed != span.Forever {
			return s, fault.Field(path, "%q is named twice", name)
		}
		s.Machines[place].Claimed = s.Now
	}
	return s, nil
}

// machine returns the host as a plan sees it. An agent can switch it on and off.
func (h *PowerHost) machine() energy.Machine {
	m := energy.Machine{
		Name: h.Name, FlopsPerWatt: h.FlopsPerWatt, Claimed: span.Forever, States: []energy.State{energy.On, energy.Off},
	}
	if h.On {
		m.Busy, m.Idle = h.Idle == 0, h.Idle
	} else {
		m.Phase = energy.Asleep
	}
	return m
}

// answer returns the plan as the answer to the question, with a reason for each host.
func (q *PowerQuestion) answer(plan energy.Plan) PowerAnswer {
	a := PowerAnswer{On: []string{}, Off: []string{}, Reasons: map[string]string{}}
	reserved := map[string]bool{}
	for _, name := range q.Reserved {
		reserved[strings.ToLower(name)] = true
	}
	explain := func(host, reason string) {
		if reserved[strings.ToLower(host)] { // the question has no time for it
			reason = "it is reserved now or within the horizon"
		}
		a.Reasons[host] = reason
	}
	for _, w := range plan.Switches {
		explain(w.Host, w.Reason)
		if w.To == energy.On {
			a.On = append(a.On, w.Host)
		} else {
			a.Off = append(a.Off, w.Host)
		}
	}
	for _, k := range plan.Kept {
		explain(k.Host, k.Reason)
	}
	return a
}
