// SPDX-License-Identifier: Apache-2.0

// Package leases serves the calls that have the form of Blazar's API v1: leases, hosts and floating IPs. pkg/blazar has
// the form itself.
//
// The files, in the order of reading:
//
//   - microversion.go: the microversion of a request
//   - form.go: the form of answers and errors
//   - list.go: the JSON of many leases
//   - api.go: what the calls need
//   - nova.go: flavors and server groups of the caller
//   - hosts.go: hosts, their properties and allocations
//   - addresses.go: floating IPs
//   - leases.go: leases
//   - routes.go: the rows of the table
package leases
