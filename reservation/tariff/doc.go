// SPDX-License-Identifier: Apache-2.0

// Package tariff knows what a host costs by time, in money or in carbon, and when a reservation costs least.
//
// A Curve has a price for each second of its steps, and none in the gaps between them. The cost of a reservation is the sum
// of the prices of its seconds, in integers. From one start to the next this sum changes at the same rate until the
// reservation's beginning or its end meets the edge of a step. So among the starts of a run, the cheapest is the first,
// the last, an edge, or an edge minus the duration; no other start needs to be tried.
//
// The files, in the order of reading: curve.go (a Curve and its costs), cheapest.go (the cheapest start), read.go (a Curve
// from text). Package feed reads the text from a file or a URL.
package tariff
