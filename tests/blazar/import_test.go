// SPDX-License-Identifier: Apache-2.0

package blazar

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/almanac-cloud/almanac/tests/blazartest"
	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

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

// The database is of MariaDB; the hosts are those of a file.
func TestTheLeasesOfBlazarsDatabaseGoOnInAlmanac(t *testing.T) {
	url, now := labtest.BlazarTables(t), time.Now().Truncate(time.Minute)
	rows := blazarHosts("True", "False")
	active := blazartest.Lease{ID: "aaaaaaaa", Status: "ACTIVE", Start: now.Add(-time.Hour), End: now.Add(time.Hour), Host: "102", Project: "demo"}
	pending := blazartest.Lease{ID: "bbbbbbbb", Status: "PENDING", Start: now.Add(time.Hour), End: now.Add(2 * time.Hour), Host: "102", Project: "demo"}
	overdue := blazartest.Lease{ID: "cccccccc", Status: "ACTIVE", Start: now.Add(-time.Hour), End: now.Add(-time.Minute), Host: "104", Project: "demo"}
	double := blazartest.Lease{ID: "dddddddd", Status: "PENDING", Start: now.Add(90 * time.Minute), End: now.Add(3 * time.Hour), Host: "102", Project: "demo"} // made at the same time
	for _, l := range []blazartest.Lease{active, pending, overdue, double} {
		rows = append(rows, l.Rows()...)
	}
	labtest.Execute(t, url, rows...)

	folder := built.NewFolder(t, built.TenHosts)
	report, complaint := blazartest.TakeOver(t, folder, nil, "--from", url, "--dry-run")
	if report.Refused != 1 || report.Done || !strings.Contains(complaint, "1 findings") {
		t.Fatalf("%+v\n%s", report, complaint)
	}
	if f := report.Findings[slices.IndexFunc(report.Findings, func(f blazartest.Finding) bool { return f.Stops })]; f.Kind != "double-booked" || f.Lease != double.Lease() || !strings.Contains(f.Text, pending.Lease()) {
		t.Errorf("%+v", f)
	}
	s := built.Start(t, folder)
	if _, complaint := blazartest.TakeOver(t, folder, nil, "--from", url, "--leave", "double-booked"); !strings.Contains(complaint, "another almanacd uses the database") {
		t.Errorf("while almanacd runs: %s", complaint)
	}
	s.Stop(t)
	if report, complaint = blazartest.TakeOver(t, folder, nil, "--from", url, "--leave", "double-booked"); !report.Done || len(report.Leases) != 3 {
		t.Fatalf("%+v\n%s", report, complaint)
	}
	if report, complaint = blazartest.TakeOver(t, folder, nil, "--from", url, "--leave", "double-booked"); !report.Done || len(report.Leases) != 0 {
		t.Errorf("again: %+v\n%s", report, complaint)
	}

	s = built.Start(t, folder)
	list := func() string {
		out, complaint, exit := s.Almanac(t, "reservation", "list", "-f", "value", "-c", "ID", "-c", "Status", "-c", "Start")
		if exit != 0 {
			t.Fatal(complaint)
		}
		return out
	}
	built.Eventually(t, "the overdue lease has ended", func() bool { return strings.Contains(list(), overdue.Reservation()+" ended") })
	for _, want := range []string{active.Reservation() + " active", pending.Reservation() + " pending " + pending.Start.UTC().Format(time.RFC3339)} {
		if out := list(); !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	// What was taken over can be changed, active or not.
	for _, l := range []blazartest.Lease{active, pending} {
		if _, complaint, exit := s.Almanac(t, "reservation", "change", l.Reservation(), "--end", l.End.Add(-5*time.Minute).UTC().Format(time.RFC3339)); exit != 0 {
			t.Errorf("a change of lease %s: %s", l.ID, complaint)
		}
	}
	// The promises hold: host-02 is taken, and the hosts have Blazar's capabilities.
	out, complaint, exit := s.Almanac(t, "reservation", "create", "more", "--quantity", "5", "--duration", "30m", "--properties", `["=", "$gpu", true]`)
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
	var all []blazartest.Lease
	rows := append([]string{"START TRANSACTION"}, blazarHosts("True")...)
	for i := range 10 * perHost {
		l := blazartest.Lease{ID: fmt.Sprintf("%08x", i), Status: "PENDING", Host: fmt.Sprint(101 + i%10), Project: "demo"}
		l.Start = now.Add(time.Duration(i/10)*length - time.Hour)
		if i < 10 {
			l.Status = "ACTIVE"
		}
		if slices.Contains([]int{15, 512, 999}, i) {
			l.Start = l.Start.Add(-length / 2)
			rivals[l.Lease()] = all[i-10].Lease()
		}
		l.End = l.Start.Add(length)
		all, rows = append(all, l), append(rows, l.Rows()...)
	}
	labtest.Execute(t, url, append(rows, "COMMIT")...)

	folder := built.NewFolder(t, built.TenHosts)
	report, complaint := blazartest.TakeOver(t, folder, nil, "--from", url, "--dry-run")
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
	if report, complaint = blazartest.TakeOver(t, folder, nil, "--from", url, "--leave", "double-booked"); !report.Done || len(report.Leases) != len(all)-3 {
		t.Fatalf("%d leases are taken over: %s", len(report.Leases), complaint)
	}

	// What Blazar would list is what Almanac lists.
	want, got := map[string][4]string{}, map[string][4]string{}
	const form = "2006-01-02T15:04:05.000000"
	for _, l := range all {
		if rivals[l.Lease()] == "" {
			want[l.Lease()] = [4]string{"lease " + l.ID, l.Status, l.Start.UTC().Format(form), l.End.UTC().Format(form)}
		}
	}
	s := built.Start(t, folder)
	response, err := http.Get(s.URL + "/v1/leases")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var list struct{ Leases []blazartest.ShownLease }
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
