// SPDX-License-Identifier: Apache-2.0

// Package serving answers calls over HTTP: who asks, whether they may, whose turn it is, how large an answer may be, and
// how an error is told. The packages beside it answer by subject; each returns rows of the table of routes, and New makes a
// server of the table. A row states all that holds for its call, so registration, limits, headers and what the log must not
// have follow from it.
//
// The way of a request: the steps of every request (middleware.go) set its id, its time and its trace; its row admits the
// caller, waits for the line of the caller's project, checks the rules of the policy, and runs the steps of the row, which
// send an answer or fail with a fault.
//
// The files, in the order of reading:
//
//   - requestid.go: the ids of a request, and the log handler that adds them
//   - metrics.go: the metrics of calls
//   - asker.go: who asks, and what the policy allows them
//   - sight.go: what an asker sees of reservations and hosts
//   - limit.go: how often a caller may ask
//   - carried.go: bodies and answers that wait for slow clients
//   - columns.go: turns, lengths and caches: columns of the table
//   - options.go: what all calls need
//   - call.go: the server and a request that it answers
//   - send.go: JSON, and errors in the form of the path
//   - errors.go: a fault as an answer
//   - refusal.go: a refusal as an answer, with what blocks
//   - caller.go: whose request it is, and the limits of that caller
//   - authenticate.go: who sent the request, and the turn of their project
//   - access.go: who may make a call: a column of the table
//   - parameters.go: the parameters of a URL
//   - decode.go: the body of a request
//   - compress.go: tags, and compressed answers
//   - tag.go: the tags of answers, and changes of what was read
//   - answer.go: the step that answers with JSON
//   - steps.go: steps that many rows have
//   - slow.go: bodies and answers of slow clients
//   - line.go: the line of a project
//   - route.go: a row of the table of routes
//   - register.go: a row as a handler
//   - identify.go: the id of a request, and its line in the log
//   - trace.go: a request as a step of a trace
//   - middleware.go: the other steps of every request
//   - server.go: the server of a table
package serving
