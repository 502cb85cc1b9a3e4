// SPDX-License-Identifier: Apache-2.0

// Package chaos runs users against replicas that are killed, and checks afterwards in the database,
// without the code of Almanac, that every promise was kept.
package chaos
