// SPDX-License-Identifier: Apache-2.0

// Package memory stores reservations, leases and floating IPs in memory, for simulations and tests. It
// implements the same ports as pkg/store.
package memory
