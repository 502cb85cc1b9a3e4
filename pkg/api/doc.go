// SPDX-License-Identifier: Apache-2.0

// Package api serves the REST API, version 1, over HTTP: it puts the table of routes together from the packages below it,
// which answer by subject, and makes a server of it. The calls about the service itself are here. pkg/api/serving states
// what holds for every call, pkg/api/v1 has the JSON types, and openapi.yaml beside this file is the contract.
//
// The files, in the order of reading:
//
//   - identity.go: who asks, with Keystone or without it
//   - metrics.go: the numbers of reservations
//   - doctor.go: the calls of the doctor
//   - options.go: the dependencies and settings
//   - health.go: the health of the process and of its parts
//   - scrapes.go: the metrics as an answer
//   - service.go: versions and documents
//   - table.go: the table of routes
//   - server.go: the server
package api
