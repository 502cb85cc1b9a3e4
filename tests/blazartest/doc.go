// SPDX-License-Identifier: Apache-2.0

// Package blazartest has what tests of Almanac in Blazar's place share: Blazar's command line, rows of
// its database, and the import of them.
package blazartest
