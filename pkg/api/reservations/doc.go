// SPDX-License-Identifier: Apache-2.0

// Package reservations serves the calls about reservations: book, list, show, change and cancel them, and ask before when
// there is room and what the limits leave.
//
// The files, in the order of reading:
//
//   - api.go: what the calls need
//   - convert.go: bodies to requests, reservations and plans to answers
//   - images.go: the image of a reservation
//   - find.go: the reservation in the path, and who may act on it
//   - limits.go: limits, and what a project uses of them
//   - availability.go: when there is room
//   - offers.go: offers for ranges
//   - reservations.go: create, list, show and change
//   - groups.go: several reservations with the same times
//   - cancellation.go: cancel, and what that would do
//   - series.go: reservations that recur
//   - routes.go: the rows of the table
package reservations
