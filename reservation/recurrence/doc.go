// SPDX-License-Identifier: Apache-2.0

// Package recurrence knows when a reservation occurs that recurs, such as on each working day at nine.
//
// The owner writes a Pattern: a rule of RFC 5545 (RRULE), a time zone, the local time of the first occurrence, and the
// local times that are left out or added. Parse checks it. The Rule that it returns lists the occurrences before an
// instant, each with the local time that identifies it. The rule is expanded in local time, where each day has 24 hours;
// then each local time becomes an instant of the zone. So a change of the clock moves no occurrence to another time of day.
//
// How long an occurrence lasts is no part of this package.
//
// The files, in the order of reading: pattern.go (a Pattern and its check), parts.go (the parts of a rule), byday.go (the part
// BYDAY), expand.go (the occurrences), zone.go (local times and their instants).
package recurrence
