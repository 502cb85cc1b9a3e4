// SPDX-License-Identifier: Apache-2.0

// Package booking decides on reservations and stores the decisions: offer, book, change,
// cancel, heal.
//
// A decision is pure: NewPlan and PlanChange take a View (the calendar, the hosts, what the
// project holds, the limits, and now) and a request, and return a Plan, or a
// *reservation.Refusal with the reason. The Service is the shell around them: it holds the
// calendar in memory, adds a plan's claims to it, stores the reservation, and removes the
// claims again if storing fails. So two requests never get the same host, and a refusal
// leaves nothing behind.
//
// The way of a request: parseRequest turns it into terms and a window, the limits are
// checked, search finds the start by the policy and the hosts by one order
// (docs/concepts.md "Which hosts"), and refuse explains why there is none. A change goes
// through changePlan, which keeps what the reservation has and searches for the rest.
package booking
