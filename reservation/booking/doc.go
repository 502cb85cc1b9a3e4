// Package booking decides on reservations and keeps the decisions: offer, book,
// change, cancel.
//
// A decision is pure: NewPlan and PlanChange take a View (the calendar, the hosts,
// what the project holds, the limits, and now) and a request, and give the plan
// or a *reservation.Refusal that says why not. The Desk is the shell around them:
// it holds the calendar in memory, puts a plan's claims into it, stores the
// reservation, and takes the claims back where storing fails. So two requests
// never get the same host, and nothing is half done after a refusal.
//
// The way of a request: settle reads it into a window and terms, the limits are
// held against it, search finds the start by the policy and the hosts by one
// order (docs/concepts.md "Which hosts"), refuse explains a no. A change goes through move,
// which keeps what the reservation has and searches for the rest.
package booking
