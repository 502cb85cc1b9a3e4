// SPDX-License-Identifier: Apache-2.0

// Package instances serves the calls about instances: the questions of the plugin in nova-scheduler, why an instance is
// where it is, preemptible instances and what their eviction costs, live migrations, best-effort work, and the servers of a
// simulated cloud.
//
// The files, in the order of reading:
//
//   - demo.go: the servers of a simulated cloud
//   - packing.go: live migrations
//   - scheduler.go: which hosts the plugin may use
//   - weigh.go: which of them is best
//   - besteffort.go: servers without a start time
//   - preemptible.go: preemptible instances
//   - preemption_cost.go: what room for an instance would cost
//   - decisions.go: why an instance is where it is
//   - routes.go: the rows of the table
package instances
