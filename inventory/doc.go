// Package inventory says what exists: the hosts, what each of them offers and
// is, and which of them a property filter means.
//
// A Source lists hosts. NewSnapshot lays the operator's overrides over such a
// list and freezes it: everything that decides reads one Snapshot, so a decision
// sees one state of the cloud. Snapshot.Properties is the catalogue of what a
// filter may speak of, and ParseFilter compiles a filter against it.
//
// The inventory knows nothing of time and promises: whether a host is free at
// some instant is the business of reservation/calendar. Paper 004 (section
// 004.1) asks here for hosts without a running VM; that is true of now only, so
// Host.Guests is reported and never used to leave a host out (E004-8).
package inventory
