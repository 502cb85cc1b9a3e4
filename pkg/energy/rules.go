package energy

import (
	"github.com/almanac-cloud/almanac/pkg/resource"
	"github.com/almanac-cloud/almanac/pkg/span"
)

// Rules are by what hosts are switched. Times are seconds; a limit of 0 is none.
type Rules struct {
	Horizon    int64 // how far ahead reservations are committed (paper 004: 900)
	IdleNeeded int   // measurements for which a host must be idle (paper 004: 5)
	// BootMargin is added to the boot time of a host that must be awake in time.
	BootMargin int64

	// Spare is what stays awake, idle and unreserved beside what is required.
	SpareHosts    int
	SparePercent  int             // of the hosts there are
	SpareCapacity resource.Vector // of the capacity of such hosts together

	// KeepLast are the kinds of group of which one host stays on.
	KeepLast []Group

	MinOn, MinOff int64 // how long a host stays on, or off, once switched
	MostOff       int   // hosts switched off by one plan
	MostSwitches  int   // of a host in a day, on and off
	MostBooting   int   // hosts that boot at once; a reservation whose time has come does not wait
}

// Group is a kind of group of hosts.
type Group string

// The kinds.
const (
	Zones      Group = "zone"
	Aggregates Group = "aggregate"
	Traits     Group = "trait"
)

// Paper gives the rules of paper 004, section 004.1: no safety limit at all.
func Paper() Rules { return Rules{Horizon: 15 * 60, IdleNeeded: 5} }

// Situation is what a plan is made from.
type Situation struct {
	Now      span.Instant
	Machines []Machine // in any order; a name once
	Forecast int       // hosts that will be in use, with those that are now (E004-7)
	// Halt says why nothing may be switched off now, in a sentence: the hosts are in
	// doubt, somebody has stopped the controller …; empty where it may.
	Halt string
}

// Plan is what should be switched now, and why.
type Plan struct {
	At       span.Instant `json:"at"`
	Forecast int          `json:"forecast"`
	Reserved int          `json:"reserved"`
	On       int          `json:"on"`       // hosts on or waking, before the plan
	Required int          `json:"required"` // the larger of Forecast and Reserved
	Spare    int          `json:"spare"`    // hosts that the rules keep beside these
	Switches []Switch     `json:"switches,omitempty"`
	// Kept are the idle hosts that stay on, and why.
	Kept []Kept `json:"kept,omitempty"`
	// Short is what could not be met, a sentence; empty where everything is.
	Short string `json:"short,omitempty"`
}

// Switch is one host to be switched.
type Switch struct {
	Host   string `json:"host"`
	To     State  `json:"to"`
	Reason string `json:"reason"` // a sentence
	// Urgent: a reservation needs it, or an operator has ordered it, so that no limit
	// and no approval stands in its way.
	Urgent bool `json:"urgent,omitempty"`
}

// Kept is an idle host that stays on.
type Kept struct {
	Host   string `json:"host"`
	Reason string `json:"reason"`
}
