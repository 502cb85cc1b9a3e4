// SPDX-License-Identifier: Apache-2.0

// Package tests holds what no single room can prove: the layout of the house, and
// the built commands used as their users use them.
package tests
