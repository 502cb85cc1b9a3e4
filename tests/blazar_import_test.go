// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/labtest"
)

// blazarLease is a lease of one host, as rows.
type blazarLease struct {
	id, status string
	start, end time.Time
	host       string // its number
	project    string
}

// uuidOf returns a UUID for a part of the lease.
func (l blazarLease) uuidOf(part int) string {
	return fmt.Sprintf("%s-0000-4000-8000-%012d", l.id, part)
}

func (l blazarLease) lease() string       { return l.uuidOf(1) }
func (l blazarLease) reservation() string { return l.uuidOf(2) }

func (l blazarLease) rows() []string {
	begun := map[string]string{"PENDING": "UNDONE", "ACTIVE": "DONE"}[l.status]
	start, end := l.start.UTC().Format(time.DateTime), l.end.UTC().Format(time.DateTime)
	return []string{
		fmt.Sprintf("INSERT INTO leases (id, created_at, name, user_id, project_id, start_date, end_date, status, degraded) VALUES ('%s', '2026-01-01 00:00:00', 'lease %s', 'u', '%s', '%s', '%s', '%s', 0)",
			l.lease(), l.id, l.project, start, end, l.status),
		fmt.Sprintf("INSERT INTO events (id, lease_id, event_type, time, status) VALUES ('%s', '%s', 'start_lease', '%s', '%s'), ('%s', '%s', 'end_lease', '%s', 'UNDONE')",
			l.uuidOf(3), l.lease(), start, begun, l.uuidOf(4), l.lease(), end),
		fmt.Sprintf("INSERT INTO reservations (id, lease_id, resource_type, status, missing_resources, resources_changed) VALUES ('%s', '%s', 'physical:host', '%s', 0, 0)",
			l.reservation(), l.lease(), strings.ToLower(l.status)),
		fmt.Sprintf(`INSERT INTO computehost_reservations (id, reservation_id, resource_properties, count_range, hypervisor_properties) VALUES ('%s', '%s', '["==", "$gpu", "True"]', '1-1', '')`,
			l.uuidOf(5), l.reservation()),
		fmt.Sprintf("INSERT INTO computehost_allocations (id, compute_host_id, reservation_id) VALUES ('%s', '%s', '%s')", l.uuidOf(6), l.host, l.reservation()),
	}
}

// blazarHosts returns the rows of tenHosts in Blazar, with the numbers 101 to 110. Their capability gpu
// has the values in turn, from the second one on.
func blazarHosts(gpu ...string) []string {
	rows := []string{
		"INSERT INTO resource_properties (id, resource_type, property_name, private) VALUES ('p', 'physical:host', 'gpu', 0)",
	}
	for i := 1; i <= 10; i++ {
		rows = append(rows,
			fmt.Sprintf("INSERT INTO computehosts (id, vcpus, cpu_info, hypervisor_type, hypervisor_version, hypervisor_hostname, service_name, memory_mb, local_gb, availability_zone, trust_id, reservable)"+
				" VALUES ('%d', 16, '', 'QEMU', 1, 'node', 'host-%02d', 65536, 500, '', '', 1)", i+100, i),
			fmt.Sprintf("INSERT INTO computehost_extra_capabilities (id, computehost_id, property_id, capability_value) VALUES ('c%d', '%d', 'p', '%s')", i, i+100, gpu[i%len(gpu)]))
	}
	return rows
}

// takenOver is a report of the import.
type takenOver struct {
	Leases   []struct{ ID, Status string }
	Servers  map[string]string
	Findings []finding
	Refused  int
	Done     bool
}

type finding struct {
	Kind, Lease, Text string
	Stops             bool
}

// takeOver runs the import on the folder and returns its report and messages.
func takeOver(t *testing.T, folder string, settings []string, arguments ...string) (report takenOver, complaint string) {
	t.Helper()
	c := command(t.Context(), folder, settings...)
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

// The database is of MariaDB; the hosts are those of a file.
func TestTheLeasesOfBlazarsDatabaseGoOnInAlmanac(t *testing.T) {
	url, now := labtest.BlazarTables(t), time.Now().Truncate(time.Minute)
	rows := blazarHosts("True", "False")
	active := blazarLease{"aaaaaaaa", "ACTIVE", now.Add(-time.Hour), now.Add(time.Hour), "102", "demo"}
	pending := blazarLease{"bbbbbbbb", "PENDING", now.Add(time.Hour), now.Add(2 * time.Hour), "102", "demo"}
	overdue := blazarLease{"cccccccc", "ACTIVE", now.Add(-time.Hour), now.Add(-time.Minute), "104", "demo"}
	double := blazarLease{"dddddddd", "PENDING", now.Add(90 * time.Minute), now.Add(3 * time.Hour), "102", "demo"} // made at the same time
	for _, l := range []blazarLease{active, pending, overdue, double} {
		rows = append(rows, l.rows()...)
	}
	labtest.Execute(t, url, rows...)

	folder := newFolder(t, tenHosts)
	report, complaint := takeOver(t, folder, nil, "--from", url, "--dry-run")
	if report.Refused != 1 || report.Done || !strings.Contains(complaint, "1 findings") {
		t.Fatalf("%+v\n%s", report, complaint)
	}
	if f := report.Findings[slices.IndexFunc(report.Findings, func(f finding) bool { return f.Stops })]; f.Kind != "double-booked" || f.Lease != double.lease() || !strings.Contains(f.Text, pending.lease()) {
		t.Errorf("%+v", f)
	}
	s := start(t, folder)
	if _, complaint := takeOver(t, folder, nil, "--from", url, "--leave", "double-booked"); !strings.Contains(complaint, "another almanacd uses the database") {
		t.Errorf("while almanacd runs: %s", complaint)
	}
	s.stop(t)
	if report, complaint = takeOver(t, folder, nil, "--from", url, "--leave", "double-booked"); !report.Done || len(report.Leases) != 3 {
		t.Fatalf("%+v\n%s", report, complaint)
	}
	if report, complaint = takeOver(t, folder, nil, "--from", url, "--leave", "double-booked"); !report.Done || len(report.Leases) != 0 {
		t.Errorf("again: %+v\n%s", report, complaint)
	}

	s = start(t, folder)
	list := func() string {
		out, complaint, exit := s.almanac(t, "reservation", "list", "-f", "value", "-c", "ID", "-c", "Status", "-c", "Start")
		if exit != 0 {
			t.Fatal(complaint)
		}
		return out
	}
	eventually(t, "the overdue lease has ended", func() bool { return strings.Contains(list(), overdue.reservation()+" ended") })
	for _, want := range []string{active.reservation() + " active", pending.reservation() + " pending " + pending.start.UTC().Format(time.RFC3339)} {
		if out := list(); !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	// What was taken over can be changed, active or not.
	for _, l := range []blazarLease{active, pending} {
		if _, complaint, exit := s.almanac(t, "reservation", "change", l.reservation(), "--end", l.end.Add(-5*time.Minute).UTC().Format(time.RFC3339)); exit != 0 {
			t.Errorf("a change of lease %s: %s", l.id, complaint)
		}
	}
	// The promises hold: host-02 is taken, and the hosts have Blazar's capabilities.
	out, complaint, exit := s.almanac(t, "reservation", "create", "more", "--quantity", "5", "--duration", "30m", "--properties", `["=", "$gpu", true]`)
	if exit == 0 || !strings.Contains(complaint, "blocked by:       host-02") || !strings.Contains(complaint, "matched:          5") {
		t.Errorf("%s%s", out, complaint)
	}
}

// Of a thousand leases, the ten hosts have a hundred each, one after the other; three of them begin
// while another lease has their host.
func TestThreeDoubleBookingsAmongAThousandLeasesAreNamedAndTheRestIsTakenOver(t *testing.T) {
	url, now := labtest.BlazarTables(t), time.Now().Truncate(time.Minute)
	const perHost, length = 100, 2 * time.Hour
	rivals := map[string]string{} // of the double bookings, by lease
	var all []blazarLease
	rows := append([]string{"START TRANSACTION"}, blazarHosts("True")...)
	for i := range 10 * perHost {
		l := blazarLease{id: fmt.Sprintf("%08x", i), status: "PENDING", host: fmt.Sprint(101 + i%10), project: "demo"}
		l.start = now.Add(time.Duration(i/10)*length - time.Hour)
		if i < 10 {
			l.status = "ACTIVE"
		}
		if slices.Contains([]int{15, 512, 999}, i) {
			l.start = l.start.Add(-length / 2)
			rivals[l.lease()] = all[i-10].lease()
		}
		l.end = l.start.Add(length)
		all, rows = append(all, l), append(rows, l.rows()...)
	}
	labtest.Execute(t, url, append(rows, "COMMIT")...)

	folder := newFolder(t, tenHosts)
	report, complaint := takeOver(t, folder, nil, "--from", url, "--dry-run")
	if report.Refused != 3 || report.Done || !strings.Contains(complaint, "3 findings") {
		t.Fatalf("%d findings stop the takeover: %s", report.Refused, complaint)
	}
	named := map[string]string{}
	for _, f := range report.Findings {
		if f.Kind == "double-booked" && strings.Contains(f.Text, rivals[f.Lease]) {
			named[f.Lease] = rivals[f.Lease]
		}
	}
	if diff := cmp.Diff(rivals, named); diff != "" {
		t.Errorf("double bookings and their rivals (-there +named):\n%s", diff)
	}
	if report, complaint = takeOver(t, folder, nil, "--from", url, "--leave", "double-booked"); !report.Done || len(report.Leases) != len(all)-3 {
		t.Fatalf("%d leases are taken over: %s", len(report.Leases), complaint)
	}

	// What Blazar would list is what Almanac lists.
	want, got := map[string][4]string{}, map[string][4]string{}
	const form = "2006-01-02T15:04:05.000000"
	for _, l := range all {
		if rivals[l.lease()] == "" {
			want[l.lease()] = [4]string{"lease " + l.id, l.status, l.start.UTC().Format(form), l.end.UTC().Format(form)}
		}
	}
	s := start(t, folder)
	response, err := http.Get(s.url + "/v1/leases")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var list struct{ Leases []shownLease }
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		t.Fatal(err)
	}
	for _, l := range list.Leases {
		got[l.ID] = [4]string{l.Name, l.Status, l.StartDate, l.EndDate}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("leases (-Blazar's +Almanac's):\n%.3000s", diff)
	}
}
