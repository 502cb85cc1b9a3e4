// SPDX-License-Identifier: Apache-2.0

// Package calendar holds the claims of hosts over time and finds free time for more.
//
// It is the availability list of Li et al., "Resource Availability-Aware
// Advance Reservation for Parallel Jobs with Deadlines" (arXiv 1203.0740, paper
// 003): requests have a ready time, a duration, a deadline and a number of
// hosts; the feasible starts are the ready time, the latest start, and the slot
// boundaries and those minus the duration; each feasible start has an
// availability rectangle (how many hosts are free, from when, until when); a
// policy chooses among the rectangles. An eighth policy chooses among the runs
// of feasible starts by a tariff, which package planning knows.
//
// Two granularities share one calendar. A whole-host claim has the host to
// itself. A slice is a resource vector of a host; slices add up at each instant
// and never exceed the host's capacity. Touching claims do not overlap.
//
// The calendar differs from the paper's linked list only in its data structure. Each host
// has a lane of busy spans; an index of hour-wide buckets has one bit for each
// host that is busy at any time of that hour. The index answers for most hosts
// at once; the lanes answer for the rest. An answer therefore never depends on
// the width or the reach of the index. The tests contain the paper's own list
// as the oracle.
//
// A Calendar knows hosts by number, and neither reservations nor projects. It is
// not safe for concurrent changes; concurrent reads are.
package calendar
