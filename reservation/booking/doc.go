// SPDX-License-Identifier: Apache-2.0

// Package booking stores decisions on reservations: offer, book, change, cancel, heal, start, end.
//
// reservation/planning decides, and the Service is the shell around it: it holds the calendar in memory,
// adds a plan's claims to it, stores the reservation, and removes the claims again if storing fails. So
// two requests never get the same host, and a refusal leaves nothing behind. It carries out what is due,
// and follows the commits of other replicas.
//
// A booking, for example, runs from Bookings.Book through decider, which admits and makes the decision, to writer,
// which stores it; both work on memory. Changes, Leases and Events do the same.
//
// The files, in the order of reading:
//
//   - records.go: the ports: what is stored, and what carries events out
//   - options.go: who calls, and what a service is made of
//   - line.go: in which order what waits is booked
//   - openings.go: what has become free for what waits
//   - agenda.go: when the next events of reservations are due
//   - counted.go: live reservations by status
//   - locks.go: locks by key, and the lock of memory
//   - log_cursor.go: which entries of the log were read
//   - listen.go: who hears of changes
//   - memory.go: what a service knows
//   - versions.go: on whose versions a decision depends
//   - apart.go: which reservations lie apart from which
//   - state.go: memory at one moment, and the view of a decision
//   - accepted.go: the images of live reservations
//   - promises.go: what others read of memory
//   - project.go: what projects hold
//   - commit.go: attempts: what is being stored
//   - together.go: new reservations in one transaction
//   - follow.go: the commits of other replicas
//   - decide.go: how decisions are admitted and entered
//   - pools.go: floating IPs, read for each decision
//   - retry.go: when a decision is made again
//   - permit.go: who must allow a booking
//   - book.go: bookings
//   - moves.go: moves of others that make room for a booking
//   - explain.go: what would be accepted instead
//   - lease.go: bookings of leases
//   - lease_change.go: changes of leases
//   - member.go: changes of a reservation that belongs to a lease
//   - modify.go: changes and cancellations
//   - series.go: bookings of series
//   - series_change.go: changes of series
//   - waiting.go: what waits for room
//   - heal.go: hosts that fail
//   - remark.go: remarks about images
//   - event_work.go: the states of events
//   - events.go: events that are due
//   - takeover.go: reservations from elsewhere
//   - service.go: the service, and the order of its locks
package booking
