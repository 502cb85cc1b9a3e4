// SPDX-License-Identifier: Apache-2.0

// Package built runs the built commands as their users do: almanacd on a folder, with Keystone, on
// Nova's topic or as a demo, and the command line against it.
package built
