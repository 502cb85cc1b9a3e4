// SPDX-License-Identifier: Apache-2.0

// Package tests holds what no single package can prove: the layout of the source, and
// the built commands used as their users use them.
package tests
