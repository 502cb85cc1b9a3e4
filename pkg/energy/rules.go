// SPDX-License-Identifier: Apache-2.0

package energy

import (
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Rules are the limits and margins of the switch plan. Times are in seconds; a limit of 0 means no
// limit.
type Rules struct {
	Horizon    int64 // how far ahead reservations keep hosts on (paper 004: 900)
	IdleNeeded int   // measurements in a row that a host must be idle (paper 004: 5)
	// BootMargin is added to the boot time of a host that must be awake in time.
	BootMargin int64

	// The spare hosts and the spare capacity stay on, idle and unreserved, in addition to the
	// required hosts.
	SpareHosts    int
	SparePercent  int             // percentage of all hosts
	SpareCapacity resource.Vector // the sum over such hosts

	// KeepLast lists the kinds of groups that keep at least one host on, in each group.
	KeepLast []Group

	MinOn, MinOff int64 // minimum time that a host stays on, or off, once switched
	MostOff       int   // hosts switched off by one plan
	MostSwitches  int   // of one host in a day, on and off
	MostBooting   int   // hosts that boot at once; a reservation that could not wait is exempt
}

// Group is a way to group hosts for KeepLast: by availability zone, by aggregate or by trait.
type Group string

// The kinds of groups.
const (
	Zones      Group = "zone"
	Aggregates Group = "aggregate"
	Traits     Group = "trait"
)

// Groups lists all kinds of groups.
var Groups = []Group{Zones, Aggregates, Traits}

// Paper returns the rules of paper 004, section 004.1, which have no safety limits.
func Paper() Rules { return Rules{Horizon: 15 * 60, IdleNeeded: 5} }

// Situation is the input of a plan.
type Situation struct {
	Now      span.Instant
	Machines []Machine // in any order, each name once
	Forecast int       // predicted hosts in use, including those in use now (erratum E004-7)
	// Halt is the reason, as a sentence, why nothing may be switched off now, for example that the
	// inventory is untrusted or that an operator has stopped it; "" if hosts may be.
	Halt string
}

// Plan is what should be switched now, with the reasons.
type Plan struct {
	At       span.Instant `json:"at"`
	Forecast int          `json:"forecast"`
	Reserved int          `json:"reserved"`
	On       int          `json:"on"`       // hosts on or waking before the plan
	Required int          `json:"required"` // the larger of Forecast and Reserved
	Spare    int          `json:"spare"`    // hosts that the rules keep on in addition to these
	Switches []Switch     `json:"switches,omitempty"`
	// Kept are the idle hosts that stay on, with the reasons.
	Kept []Kept `json:"kept,omitempty"`
	// Short states, as a sentence, which requirements the plan cannot meet; "" if it meets all.
	Short string `json:"short,omitempty"`
}

// Switch is a host that should be switched.
type Switch struct {
	Host   string `json:"host"`
	To     State  `json:"to"`
	Reason string `json:"reason"` // as a sentence
	// Urgent is true if a reservation needs the host or an operator has ordered the switch: it
	// needs no approval, and most limits do not apply.
	Urgent bool `json:"urgent,omitempty"`
}

// Kept is an idle host that stays on.
type Kept struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
}
