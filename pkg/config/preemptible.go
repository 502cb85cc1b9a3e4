package config

import "time"

// Preemptible is section [preemptible]: which instances are, and how they make room.
type Preemptible struct {
	ExtraSpec, Hint string // empty: no sign
	Projects        []string
	Protect         string // key of metadata; empty: none

	MakeRoom        string // "delete", "shelve", "migrate" or "no"
	Notice          time.Duration
	EvictionTimeout time.Duration
	FillReserved    bool

	Cost                    string // one of Costs
	CostPeriod              time.Duration
	PriceSpec, PrioritySpec string
}

// Costs are the values of [preemptible] cost.
var Costs = []string{"partial_hour", "running_time", "age", "price", "priority"}

func preemptibleOptions(p *Preemptible) []option {
	return []option{
		text(&p.ExtraSpec, "extra_spec", "almanac:preemptible",
			"Extra spec of a flavor: where it is true the flavor's instances are preemptible. Empty means none."),
		text(&p.Hint, "hint", "preemptible",
			"Scheduler hint of a boot request: where it is true the instance is preemptible. Empty means none. It takes "+
				"[scheduler] mode = interpose or replace, or a Nova that tells the hints of an instance, which begins with "+
				"microversion 2.100."),
		list(&p.Projects, "projects", nil, "Ids of projects all of whose instances are preemptible."),
		text(&p.Protect, "protect_metadata", "almanac:protected",
			"Metadata of an instance: where it is true the instance never makes room for others, as when it is locked. Its "+
				"owner may set it. Empty means none."),
		choice(&p.MakeRoom, "make_room", "delete", []string{"delete", "shelve", "migrate", "no"},
			"What happens to preemptible instances where an instance that is not preemptible finds no room. no: they stay. It "+
				"takes [scheduler] mode = replace."),
		duration(&p.Notice, "notice", 0, 0, 15*time.Minute,
			"How long before that their owners are told: by a notification, and by metadata of the server. The new instance "+
				"waits as long; its conductor does so for [DEFAULT] long_rpc_timeout, 30 minutes by default."),
		duration(&p.EvictionTimeout, "eviction_timeout", time.Minute, time.Second, 10*time.Minute,
			"How long after the notice they have to be gone. Where one is not, it keeps its place, and the new instance goes "+
				"elsewhere, or nowhere."),
		boolean(&p.FillReserved, "fill_reserved", true,
			"Preemptible instances may use hosts of a running reservation that its owner has not filled, until his instances "+
				"come. It takes [scheduler] mode = replace, make_room, and no forward_transport_url: what is passed on evicts nobody."),
		choice(&p.Cost, "cost", Costs[0], Costs,
			"What it costs to take an instance away; the cheapest go. partial_hour: the time since its last full cost_period, "+
				"running_time: since it began to run, age: since it was asked for, price and priority: what its flavor says in "+
				"price_extra_spec or priority_extra_spec."),
		duration(&p.CostPeriod, "cost_period", time.Hour, time.Second, 365*day, "The period that is charged for as a whole."),
		text(&p.PriceSpec, "price_extra_spec", "almanac:price",
			"Extra spec of a flavor with the price of its instances, a decimal number. Without one it is 0."),
		text(&p.PrioritySpec, "priority_extra_spec", "almanac:priority",
			"Extra spec of a flavor with the priority of its instances, a whole number that is not negative. Without one it is 0."),
	}
}
