// SPDX-License-Identifier: Apache-2.0

// Package source compares the source and its pages with each other: layers, words, licenses, documents, and
// the tables of the guides. It needs the repository alone.
package source
