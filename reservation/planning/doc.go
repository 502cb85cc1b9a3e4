// SPDX-License-Identifier: Apache-2.0

// Package planning decides on reservations. Each decision is a pure function of a View (the hosts, the calendar, what the
// project holds, the limits, the images, and now) and a request. It returns a Plan, or a *reservation.Refusal with the
// reason and with what would be accepted instead.
//
// The way of a request: NewPlan parses it into terms and a window; the limits are checked; the search finds the start by
// the policy and the hosts by one order (docs/concepts.md "Which hosts"); and a refusal explains why there is none. A
// change goes through PlanChange, which keeps what the reservation has and searches for the rest. NewLeasePlan and
// PlanLeaseChange are the same for several reservations that begin and end together.
package planning
