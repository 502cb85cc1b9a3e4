// SPDX-License-Identifier: Apache-2.0

// Package calendar serves the calls about when what is and was reserved: the calendar of hosts, host-hours, and the feeds
// for calendar programs.
//
// The files, in the order of reading:
//
//   - fingerprint.go: versions of the inventory, and the tags of the last calendars
//   - icalendar.go: reservations as iCalendar
//   - api.go: what the calls need
//   - past.go: what is over, beside what is not
//   - feed.go: feeds and their links
//   - view.go: a request for the calendar, and its versions
//   - page.go: a page of the calendar
//   - usage.go: host-hours
//   - calendar.go: the calendar, unless the client has it
//   - routes.go: the rows of the table
package calendar
