// Package inventory says what exists: the hosts, what each of them offers and
// is, and which of them a property filter means.
//
// A Source lists hosts. NewSnapshot lays the operator's overrides over such a
// list and freezes it: everything that decides reads one Snapshot, so a decision
// sees one state of the cloud. Snapshot.Properties is the catalogue of what a
// filter may speak of, and ParseFilter compiles a filter against it.
//
// What places instances reads more of a host, and newer, than what promises them: States
// are laid out for filters and weighers, and a Board keeps the current ones.
//
// The inventory knows nothing of time and promises: whether a host is free at
// some instant is the business of reservation/calendar. Paper 004 (section
// 004.1) asks here for hosts without a running VM; that is true of now only, so
// Host.Guests is reported and never used to leave a host out (E004-8).
package inventory
