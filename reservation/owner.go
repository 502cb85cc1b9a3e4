// SPDX-License-Identifier: Apache-2.0

package reservation

// BelongsTo reports whether a reservation is one of a project's own: its users may see, change and use
// it, and their servers in it leave at its end. The store has the same as SQL (owned in pkg/store), and the
// page as belongs (pkg/dashboard/page/main.js). tests/source/owner_asked_test.go lists each
// call by what it decides.
func (r *Reservation) BelongsTo(project string) bool { return r.ProjectID == project }

// BelongsTo reports whether a lease is one of a project's own, as for a reservation.
func (l *Lease) BelongsTo(project string) bool { return l.ProjectID == project }

// BelongsTo reports whether a series is one of a project's own, as for a reservation.
func (s *Series) BelongsTo(project string) bool { return s.ProjectID == project }

// Projects returns the projects to which the reservation belongs.
func (r *Reservation) Projects() []string { return []string{r.ProjectID} }
