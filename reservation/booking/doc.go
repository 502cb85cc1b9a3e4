// SPDX-License-Identifier: Apache-2.0

// Package booking stores decisions on reservations: offer, book, change, cancel, heal, start, end.
//
// reservation/planning decides, and the Service is the shell around it: it holds the calendar in memory,
// adds a plan's claims to it, stores the reservation, and removes the claims again if storing fails. So
// two requests never get the same host, and a refusal leaves nothing behind. It carries out what is due,
// and follows the commits of other replicas.
package booking
