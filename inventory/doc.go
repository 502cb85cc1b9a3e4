// SPDX-License-Identifier: Apache-2.0

// Package inventory describes the hosts: what each of them offers and is, and which of them a
// property filter selects.
//
// A Source lists hosts. NewSnapshot applies the operator's overrides to such a list and freezes
// it: every decision reads one Snapshot, so it sees one state of the cloud. Snapshot.Properties
// is the catalog of the properties that a filter can use, and ParseFilter compiles a filter
// against it.
//
// Placing instances needs more facts about a host, and newer ones, than promising hosts. States
// are laid out for filters and weighers, and LiveState holds the current ones.
//
// The inventory knows nothing of time and promises: reservation/calendar decides whether a host is
// free at an instant. Paper 004 (section 004.1) requires hosts without a running VM here; that is
// only true of the present, so Host.InstanceCount is reported and never excludes a host
// (erratum E004-8).
package inventory
