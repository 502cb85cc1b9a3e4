package config

import (
	"time"

	"github.com/almanac-cloud/almanac/pkg/preemption"
)

// Preemptible is section [preemptible]: which instances are preemptible, and how Almanac
// preempts them.
type Preemptible struct {
	ExtraSpec, Hint string // empty: not used
	Projects        []string
	Protect         string // metadata key; empty: none

	MakeRoom        string // "delete", "shelve", "migrate" or "no"
	Notice          time.Duration
	EvictionTimeout time.Duration
	FillReserved    bool

	Cost                    string // one of preemption.Costs
	CostPeriod              time.Duration
	PriceSpec, PrioritySpec string
}

func preemptibleOptions(p *Preemptible) []option {
	return []option{
		text(&p.ExtraSpec, "extra_spec", "almanac:preemptible",
			"Flavor extra spec that makes the flavor's instances preemptible if it is true. Empty means none."),
		text(&p.Hint, "hint", "preemptible",
			"Scheduler hint that makes an instance preemptible if it is true. Empty means none. Requires [scheduler] mode = interpose "+
				"or replace, or a Nova with microversion 2.100, which reports the hints of an instance."),
		list(&p.Projects, "projects", nil, "IDs of projects whose instances are all preemptible."),
		text(&p.Protect, "protect_metadata", "almanac:protected",
			"Server metadata key: an instance with the value true is never preempted, like a locked instance. Its owner may set it. "+
				"Empty means none."),
		choice(&p.MakeRoom, "make_room", "delete", []string{"delete", "shelve", "migrate", "no"},
			"Action on preemptible instances when a normal instance does not fit: delete, shelve, migrate, or no (never preempt). "+
				"Requires [scheduler] mode = replace."),
		duration(&p.Notice, "notice", 0, 0, 15*time.Minute,
			"How long before the action Almanac warns the owners of the instances, by a notification and by server metadata. The new "+
				"instance waits meanwhile; Nova's conductor waits up to [DEFAULT] long_rpc_timeout, 30 minutes by default."),
		duration(&p.EvictionTimeout, "eviction_timeout", time.Minute, time.Second, 10*time.Minute,
			"Time limit for the action. If an instance is still there, it stays, and Almanac looks for another host for the new "+
				"instance."),
		boolean(&p.FillReserved, "fill_reserved", true,
			"Preemptible instances may use the unused part of a running reservation until its owner's instances need it. Requires "+
				"[scheduler] mode = replace, make_room other than no, and no forward_transport_url: forwarded requests preempt nothing."),
		choice(&p.Cost, "cost", preemption.PartialHour, preemption.Costs,
			"Cost of preempting an instance; Almanac chooses the cheapest set. partial_hour: time since its last full cost_period. "+
				"running_time: time since it started to run. age: time since it was requested. price, priority: the value of its "+
				"flavor's price_extra_spec or priority_extra_spec."),
		duration(&p.CostPeriod, "cost_period", time.Hour, time.Second, 365*day, "Billing period of partial_hour."),
		text(&p.PriceSpec, "price_extra_spec", "almanac:price",
			"Flavor extra spec with the price of its instances, a decimal number. Without it the price is 0."),
		text(&p.PrioritySpec, "priority_extra_spec", "almanac:priority",
			"Flavor extra spec with the priority of its instances, a whole number of at least 0. Without it the priority is 0."),
	}
}
