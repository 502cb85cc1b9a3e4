// SPDX-License-Identifier: Apache-2.0

// Package hosts serves the calls about hosts: their properties, the images on them, and those that are switched off while
// nobody needs them.
//
// The files, in the order of reading:
//
//   - energy_convert.go: the energy controller's words in the JSON types
//   - images.go: images on hosts
//   - api.go: what the calls about hosts and properties need
//   - hosts.go: hosts and properties
//   - energy.go: the energy controller as a whole
//   - energy_hosts.go: single hosts that are switched
//   - routes.go: the rows of the table
package hosts
