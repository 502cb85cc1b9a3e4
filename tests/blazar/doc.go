// SPDX-License-Identifier: Apache-2.0

// Package blazar runs the clients of Blazar against Almanac, and takes over a database of Blazar.
package blazar
