// SPDX-License-Identifier: Apache-2.0

// Package events serves the stream of events: which reservations and hosts have changed, as far as the caller may see it.
// One log in memory has the latest events for all streams, so that a stream that breaks goes on where it was, also at
// another replica.
//
// The files, in the order of reading:
//
//   - log.go: the latest events, and the place of a stream among them
//   - open.go: the open streams, and how many there may be
//   - api.go: what streams need, and the row of the table
//   - hosts.go: events about hosts
//   - stream.go: one stream
package events
