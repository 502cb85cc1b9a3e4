// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	"github.com/almanac-cloud/almanac/inventory"
	"github.com/almanac-cloud/almanac/pkg/eviction"
	"github.com/almanac-cloud/almanac/pkg/preemption"
	"github.com/almanac-cloud/almanac/reservation/upkeep"
)

// Preemptible is section [preemptible]: which instances are preemptible, and how Almanac
// preempts them.
type Preemptible struct {
	Rule         inventory.PreemptibleRule // Leaves follows from Action
	Action       upkeep.Order              // or NeverPreempt
	Eviction     eviction.Options          // EvictFirst follows from Action
	FillReserved bool
	Cost         string // one of preemption.Costs
	CostOptions  preemption.CostOptions
}

// NeverPreempt is the Action that leaves preemptible instances where they are.
const NeverPreempt upkeep.Order = "no"

// actions are all values of Preemptible.Action.
var actions = []upkeep.Order{upkeep.OrderDelete, upkeep.OrderShelve, upkeep.OrderMigrate, NeverPreempt}

func preemptibleOptions(p *Preemptible) []option {
	return []option{
		text(&p.Rule.ExtraSpec, "extra_spec", "almanac:preemptible",
			"Flavor extra spec that makes the flavor's instances preemptible if it is true. Empty means none."),
		text(&p.Rule.Hint, "hint", "preemptible",
			"Scheduler hint that makes an instance preemptible if it is true. Empty means none. Requires [scheduler] mode = interpose "+
				"or replace, or a Nova with microversion 2.100, which reports the hints of an instance."),
		list(&p.Rule.Projects, "projects", nil, "IDs of projects whose instances are all preemptible."),
		text(&p.Rule.Protect, "protect_metadata", "almanac:protected",
			"Server metadata key: an instance with the value true is never preempted, like a locked instance. Its owner may set it. "+
				"Empty means none."),
		choice(&p.Action, "preempt_action", upkeep.OrderDelete, actions,
			"Action on preemptible instances when a normal instance does not fit: delete, shelve, migrate, or no (never preempt). "+
				"Requires [scheduler] mode = replace."),
		duration(&p.Eviction.Notice, "eviction_notice", 0, 0, 15*time.Minute,
			"How long before the action Almanac warns the owners of the instances, by a notification and by server metadata. The new "+
				"instance waits meanwhile; Nova's conductor waits up to [DEFAULT] long_rpc_timeout, 30 minutes by default."),
		duration(&p.Eviction.Timeout, "eviction_timeout", time.Minute, time.Second, 10*time.Minute,
			"Time limit for the action, and for each warning. If an instance is still there, it stays, and Almanac looks for another "+
				"host for the new instance."),
		boolean(&p.FillReserved, "fill_reserved", true,
			"Preemptible instances may use the unused part of a running reservation until its owner's instances need it. Requires "+
				"[scheduler] mode = replace, preempt_action other than no, and no forward_transport_url: forwarded requests preempt nothing."),
		choice(&p.Cost, "victim_cost", preemption.PartialHour, preemption.Costs,
			"Cost of preempting an instance; Almanac chooses the cheapest set. partial_hour: time since its last full cost_period. "+
				"running_time: time since it started to run. age: time since it was requested. price, priority: the value of its "+
				"flavor's price_extra_spec or priority_extra_spec."),
		duration(&p.CostOptions.Period, "cost_period", time.Hour, time.Second, 365*day, "Billing period of partial_hour."),
		text(&p.CostOptions.PriceSpec, "price_extra_spec", "almanac:price",
			"Flavor extra spec with the price of its instances, a decimal number. Without it the price is 0."),
		text(&p.CostOptions.PrioritySpec, "priority_extra_spec", "almanac:priority",
			"Flavor extra spec with the priority of its instances, a whole number of at least 0. Without it the priority is 0."),
	}
}
