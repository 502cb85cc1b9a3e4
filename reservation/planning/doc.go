// SPDX-License-Identifier: Apache-2.0

// Package planning decides on reservations. Each decision is a pure function of a View (the hosts, the calendar, what the
// project holds, the limits, the images, the tariff, and now) and a request. It returns a Plan, or a *reservation.Refusal with the
// reason and with what would be accepted instead.
//
// The way of a request: NewPlan parses it into terms and a window; the limits are checked; the search finds the start by
// the policy and the hosts by one order (docs/concepts.md "Which hosts"); and a refusal explains why there is none. A
// change goes through PlanChange, which keeps what the reservation has and searches for the rest. NewLeasePlan and
// PlanLeaseChange are the same for several reservations that begin and end together.
//
// The files, in the order of reading:
//
//   - claims.go: what claims say
//   - limits.go: what a project may hold, and holds
//   - envelope.go: the larger of two lists of claims
//   - history.go: the log of a reservation
//   - effort.go: what the searches of one decision share, and how much they may look at
//   - view.go: what a decision depends on, and the plan that it returns
//   - host_index.go: the hosts by their numbers in the calendar
//   - scarce.go: scarce features of hosts
//   - maintenance.go: what differs for maintenance
//   - together.go: rules about how hosts lie to each other
//   - request.go: a request and its checks
//   - hold.go: what a hold is, and how it ends
//   - waiting.go: what a waiting reservation is, and how it is booked
//   - search.go: which hosts match, and which of them come first
//   - together_choose.go: hosts that lie to each other as a request asks
//   - hosts_with_instances.go: hosts with instances, and hosts without claims
//   - host_limit.go: the limit on hosts over time
//   - cheapest.go: the cheapest start by a tariff
//   - windows.go: when there is room
//   - together_search.go: starts for hosts that lie to each other
//   - apart.go: hosts that lie apart from those of other reservations
//   - staged.go: the image of a request
//   - refuse.go: why there is no plan, and what would be accepted
//   - impossible.go: requests that fit no host
//   - sleepers.go: hosts that sleep
//   - images_hosts.go: hosts for an image
//   - images_starts.go: starts for an image
//   - images.go: a plan with an image, or its refusal
//   - plan.go: the plan of a request
//   - changed.go: a reservation after a plan
//   - change_plan.go: the plan of a change
//   - change_filter.go: which hosts a reservation with a new filter keeps
//   - together_change.go: how the hosts of a changed reservation lie to each other
//   - shrink.go: which hosts a smaller reservation keeps
//   - moves_place.go: where others move
//   - moves.go: moves of others that make room for a request
//   - moves_extension.go: moves of others that make room for an extension
//   - lease_plan.go: the plan of a lease
//   - lease_differing.go: what a change of a lease changes
//   - change.go: a change and its checks
//   - lease_arrange.go: hosts for several reservations at once
//   - lease_awake.go: a lease that starts when its hosts are awake
//   - lease_change_plan.go: the plan of a change of a lease
//   - lease_window.go: a lease that starts within a window
//   - addresses.go: floating IPs
//   - extend.go: the latest end of an extension
//   - offer_wish.go: a request for offers and its checks
//   - offer_search.go: the most and the longest that there is room for
//   - offers.go: the offers for a wish
//   - series.go: a reservation that recurs
//   - healing.go: other hosts for those that fail
//   - lease_change_blocks.go: what blocks a change of a lease
//   - lease_explain.go: what would be accepted in place of a lease
package planning
