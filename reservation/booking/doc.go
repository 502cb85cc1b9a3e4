// SPDX-License-Identifier: Apache-2.0

// Package booking stores decisions on reservations: offer, book, change, cancel, heal, start, end.
//
// reservation/planning decides, and the Service is the shell around it: it holds the calendar in memory,
// adds a plan's claims to it, stores the reservation, and removes the claims again if storing fails. So
// two requests never get the same host, and a refusal leaves nothing behind. It carries out what is due,
// and follows the commits of other replicas.
//
// The files, in the order of reading:
//
//   - records.go: the ports: what is stored, and what carries events out
//   - locks.go: locks by key, and the lock of memory
//   - agenda.go: when the next events of reservations are due
//   - log_cursor.go: which entries of the log were read
//   - service.go: the service: its memory and the order of its locks
//   - versions.go: on whose versions a decision depends
//   - counted.go: live reservations by status
//   - accepted.go: the images of live reservations
//   - state.go: memory at one moment, and the view of a decision
//   - promises.go: what is promised
//   - listen.go: who hears of changes
//   - commit.go: attempts: what is being stored
//   - project.go: what projects hold
//   - pools.go: floating IPs, read for each decision
//   - together.go: new reservations in one transaction
//   - follow.go: the commits of other replicas
//   - retry.go: when a decision is made again
//   - permit.go: who must allow a booking
//   - book.go: bookings
//   - event_work.go: the states of events
//   - events.go: events that are due
//   - explain.go: what would be accepted instead
//   - modify.go: changes and cancellations
//   - heal.go: hosts that fail
//   - remark.go: remarks about images
//   - lease.go: bookings of leases
//   - lease_change.go: changes of leases
//   - member.go: changes of a reservation that belongs to a lease
//   - takeover.go: reservations from elsewhere
package booking
