// SPDX-License-Identifier: Apache-2.0

// Package bench measures the figures of docs/performance.md that need the built commands, each beside
// the figure that is its measure.
package bench
