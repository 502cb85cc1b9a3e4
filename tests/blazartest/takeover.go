// SPDX-License-Identifier: Apache-2.0

package blazartest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/almanac-cloud/almanac/tests/built"
)

// Lease is a lease of one host, as rows.
type Lease struct {
	ID, Status string
	Start, End time.Time
	Host       string // its number
	Project    string
}

// uuidOf returns a UUID for a part of the lease.
func (l Lease) uuidOf(part int) string {
	return fmt.Sprintf("%s-0000-4000-8000-%012d", l.ID, part)
}

// Lease and Reservation return the UUIDs of the lease and of its reservation.
func (l Lease) Lease() string { return l.uuidOf(1) }

func (l Lease) Reservation() string { return l.uuidOf(2) }

// Rows returns the statements that insert the lease into Blazar's database.
func (l Lease) Rows() []string {
	begun := map[string]string{"PENDING": "UNDONE", "ACTIVE": "DONE"}[l.Status]
	start, end := l.Start.UTC().Format(time.DateTime), l.End.UTC().Format(time.DateTime)
	return []string{
		fmt.Sprintf("INSERT INTO leases (id, created_at, name, user_id, project_id, start_date, end_date, status, degraded) VALUES ('%s', '2026-01-01 00:00:00', 'lease %s', 'u', '%s', '%s', '%s', '%s', 0)",
			l.Lease(), l.ID, l.Project, start, end, l.Status),
		fmt.Sprintf("INSERT INTO events (id, lease_id, event_type, time, status) VALUES ('%s', '%s', 'start_lease', '%s', '%s'), ('%s', '%s', 'end_lease', '%s', 'UNDONE')",
			l.uuidOf(3), l.Lease(), start, begun, l.uuidOf(4), l.Lease(), end),
		fmt.Sprintf("INSERT INTO reservations (id, lease_id, resource_type, status, missing_resources, resources_changed) VALUES ('%s', '%s', 'physical:host', '%s', 0, 0)",
			l.Reservation(), l.Lease(), strings.ToLower(l.Status)),
		fmt.Sprintf(`INSERT INTO computehost_reservations (id, reservation_id, resource_properties, count_range, hypervisor_properties) VALUES ('%s', '%s', '["==", "$gpu", "True"]', '1-1', '')`,
			l.uuidOf(5), l.Reservation()),
		fmt.Sprintf("INSERT INTO computehost_allocations (id, compute_host_id, reservation_id) VALUES ('%s', '%s', '%s')", l.uuidOf(6), l.Host, l.Reservation()),
	}
}

// TakenOver is a report of the import.
type TakenOver struct {
	Leases   []struct{ ID, Status string }
	Servers  map[string]string
	Findings []Finding
	Refused  int
	Done     bool
}

type Finding struct {
	Kind, Lease, Text string
	Stops             bool
}

// TakeOver runs the import on the folder and returns its report and messages.
func TakeOver(t *testing.T, folder string, settings []string, arguments ...string) (report TakenOver, complaint string) {
	t.Helper()
	c := built.Command(t.Context(), folder, settings...)
	c.Args = append(append(c.Args, "import", "blazar", "-f", "json"), arguments...)
	var problems strings.Builder
	c.Stderr = &problems
	out, err := c.Output()
	if len(out) > 0 {
		if broken := json.Unmarshal(out, &report); broken != nil {
			t.Fatalf("%v\n%s", broken, out)
		}
	}
	if (err != nil) != (problems.Len() > 0) {
		t.Fatalf("%v, %s", err, problems.String())
	}
	return report, problems.String()
}

// ShownLease is a lease in the list of Blazar's API, with what must stay the same.
type ShownLease struct {
	ID, Name, Status string
	UserID           string `json:"user_id"`
	ProjectID        string `json:"project_id"`
	StartDate        string `json:"start_date"`
	EndDate          string `json:"end_date"`
	Degraded         bool
	Reservations     []struct {
		ID, Status   string
		ResourceType string `json:"resource_type"`
		Min, Max     int
		VCPUs        int
		MemoryMB     int `json:"memory_mb"`
		Amount       int
		FlavorID     string `json:"flavor_id"`
		Properties   string `json:"resource_properties"`
	}
}
