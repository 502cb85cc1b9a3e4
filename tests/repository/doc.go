// SPDX-License-Identifier: Apache-2.0

// Package repository reads what the repository holds for tests that compare it with the code: pages,
// tables, and the names of tests.
package repository
