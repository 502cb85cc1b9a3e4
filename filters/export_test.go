// SPDX-License-Identifier: Apache-2.0

package filters

// Match reports whether a host's value satisfies an extra spec.
func Match(value, asked string) (bool, error) { return compare(asked).holds(value) }
