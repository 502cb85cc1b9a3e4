// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "github.com/almanac-cloud/almanac/pkg/api/v1"
)

// rack returns an API with the hosts cmp-001 to cmp-012 and one named spare.
func rack(t *testing.T) *api {
	a := newAPI(t)
	list := v1.HostList{Hosts: []v1.Host{{Name: "spare"}}}
	for _, name := range strings.Fields("cmp-001 cmp-002 cmp-003 cmp-010 cmp-012") {
		list.Hosts = append(list.Hosts, v1.Host{Name: name})
	}
	for _, h := range list.Hosts {
		a.on("PATCH /v1/hosts/"+h.Name, http.StatusOK, v1.Host{Name: h.Name, Reservable: true})
	}
	a.on("GET /v1/hosts", http.StatusOK, list)
	return a
}

func TestHostSetChangesAllThatItsArgumentsStandFor(t *testing.T) {
	const list = "GET /v1/hosts?limit=1000"
	patches := func(names string) (lines []string) {
		for _, name := range strings.Fields(names) {
			lines = append(lines, "PATCH /v1/hosts/"+name)
		}
		return lines
	}
	for args, want := range map[string][]string{
		"cmp-002":                     patches("cmp-002"),
		"cmp-003 spare":               patches("cmp-003 spare"),
		"cmp-[001-003]":               patches("cmp-001 cmp-002 cmp-003"),
		"cmp-[001,003],spare":         patches("cmp-001 cmp-003 spare"),
		"cmp-[001-003/2] cmp-003":     patches("cmp-001 cmp-003"),
		"spare,cmp-01?":               append([]string{list}, patches("spare cmp-010 cmp-012")...),
		"cmp-*":                       append([]string{list}, patches("cmp-001 cmp-002 cmp-003 cmp-010 cmp-012")...),
		"cmp-01?":                     append([]string{list}, patches("cmp-010 cmp-012")...),
		"* cmp-*":                     append([]string{list}, patches("spare cmp-001 cmp-002 cmp-003 cmp-010 cmp-012")...),
		"cmp-[002-003] cmp-00* spare": append([]string{list}, patches("cmp-002 cmp-003 cmp-001 spare")...),
	} {
		t.Run(args, func(t *testing.T) {
			a := rack(t)
			almanac(t, a, append([]string{"host", "set", "--reservable"}, strings.Fields(args)...)...).wantDone(t)
			if diff := cmp.Diff(want, a.lines()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			for _, asked := range a.asked() {
				if strings.HasPrefix(asked.Line, "PATCH") && asked.Body != `{"reservable":true}` {
					t.Errorf("sent %s", asked.Body)
				}
			}
		})
	}
}

func TestHostSetListsTheHostsThatItHasChanged(t *testing.T) {
	got := almanac(t, rack(t), "host", "set", "cmp-00?", "--reservable", "-f", "value", "-c", "Name", "-c", "Reservable")
	got.wantDone(t)
	if want := "cmp-001 true\ncmp-002 true\ncmp-003 true\n"; got.stdout != want {
		t.Errorf("stdout %q, want %q", got.stdout, want)
	}
}

func TestAHostThatCannotBeSetKeepsNoOtherFromIt(t *testing.T) {
	got := almanac(t, rack(t), "host", "set", "cmp-001", "cmp-007", "cmp-002", "--power", "waking", "-f", "value", "-c", "Name")
	if want := "cmp-001\ncmp-002\n"; got.code != exitNotFound || got.stdout != want || !strings.Contains(got.stderr, "host cmp-007: ") {
		t.Errorf("exit code %d, stdout %q, stderr %s", got.code, got.stdout, got.stderr)
	}
}

func TestHostSetChangesNothingWhenItsArgumentsAreWrong(t *testing.T) {
	for args, want := range map[string]struct {
		code    int
		mention string
	}{
		"--reservable cmp-1*":                 {exitNotFound, `no host matches "cmp-1*"`},
		"--reservable spare cmp-1*":           {exitNotFound, `no host matches "cmp-1*"`},
		"--reservable cmp-[003-001]":          {exitUsage, "runs backwards"},
		"--reservable cmp-[a-b]":              {exitUsage, "is not a range of numbers"},
		"--reservable cmp-[001-003]*":         {exitUsage, "has both a range and * or ?"},
		"--reservable":                        {exitUsage, "requires at least 1 arg"},
		"--power off spare":                   {exitUsage, `--power: there is no power state "off"; there are on, sleeping, waking, failed, source`},
		"--power sleepin spare":               {exitUsage, `did you mean "sleeping"?`},
		"spare":                               {exitUsage, "set --property or --property-string"},
		"--power on --property rack= --bogus": {exitUsage, "bogus"},
	} {
		t.Run(args, func(t *testing.T) {
			a := rack(t)
			almanac(t, a, append([]string{"host", "set"}, strings.Fields(args)...)...).wantFailure(t, want.code, want.mention)
			for _, line := range a.lines() {
				if strings.HasPrefix(line, "PATCH") {
					t.Errorf("sent %s", line)
				}
			}
		})
	}
}

func TestHostShowHasPowerProblemAndInstances(t *testing.T) {
	a := newAPI(t)
	a.on("GET /v1/hosts/n1", http.StatusOK, v1.Host{
		Name: "n1", Power: "failed", Problem: "it is marked as failed", Instances: []v1.Instance{
			{ID: "i-1", Name: "web", ProjectID: "p", Status: "ACTIVE", Flavor: "m1.tiny", LaunchedAt: new(morning.Add(-time.Hour)), Preemptible: true},
			{ID: "i-2", Name: "db\x1b[2J", ProjectID: "q", Status: "BUILD", Flavor: "m1.large", ReservationID: "r-1"},
		},
	})
	got := almanac(t, a, "host", "show", "n1", "-c", "Power", "-c", "Problem", "-c", "Instance Details")
	got.wantDone(t)
	want := `
+------------------+-------------------------------------------------------------------------+
| Field            | Value                                                                   |
+------------------+-------------------------------------------------------------------------+
| Power            | failed                                                                  |
| Problem          | it is marked as failed                                                  |
| Instance Details | i-1 web ACTIVE m1.tiny project p since 2026-12-01T08:00:00Z preemptible |
|                  | "i-2 db\x1b[2J BUILD m1.large project q reservation r-1"                |
+------------------+-------------------------------------------------------------------------+
`
	if diff := cmp.Diff(want[1:], got.stdout); diff != "" {
		t.Errorf("stdout (-want +got):\n%s", diff)
	}
}

func TestHostMaintenancePlansThatOfAllThatItsArgumentsStandFor(t *testing.T) {
	a := rack(t)
	a.on("POST /v1/reservations", http.StatusCreated, v1.Reservation{ID: "m-1", Name: "new memory", Maintenance: true})
	got := almanac(t, a, "host", "maintenance", "cmp-00?", "spare", "--start", "2026-12-05T06:00Z", "--duration", "4h", "--reason", "new memory", "-f", "value", "-c", "ID")
	got.wantDone(t)
	asked := a.asked()
	want := `{"name":"new memory","start_time":"2026-12-05T06:00:00Z","duration":14400,"maintenance":true,"hosts":["cmp-001","cmp-002","cmp-003","spare"]}`
	if last := asked[len(asked)-1]; last.Body != want || got.stdout != "m-1\n" {
		t.Errorf("stdout %q, sent %s, want %s", got.stdout, last.Body, want)
	}
}

func TestARefusalOfMaintenanceNamesWhatIsInTheWay(t *testing.T) {
	a := rack(t)
	nine, ten := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC), time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC)
	a.on("POST /v1/reservations", http.StatusConflict, v1.ErrorAnswer{Error: v1.Error{Kind: "refused", Message: "no"}, Refusal: &v1.Refusal{
		Constraint: "free_hosts", BlockedBy: []v1.Block{{Host: "spare", Start: nine, End: ten, Reservations: []v1.Blocker{{ID: "r-1", Name: "run", ProjectID: "demo"}}}},
		EarliestStart: &ten,
	}})
	got := almanac(t, a, "host", "maintenance", "spare", "--duration", "4h", "--reason", "x")
	for _, part := range []string{"spare from 2026-12-01T09:00:00Z to 2026-12-01T10:00:00Z: run (r-1) of project demo\n", "hint: try --start 2026-12-01T10:00:00Z\n"} {
		if !strings.Contains(got.stderr, part) {
			t.Errorf("stderr lacks %q:\n%s", part, got.stderr)
		}
	}
}

func TestMaintenanceNeedsAReasonAndATime(t *testing.T) {
	for _, args := range []string{"--duration 1h", "--reason x"} {
		a := rack(t)
		almanac(t, a, append([]string{"host", "maintenance", "spare"}, strings.Fields(args)...)...).wantFailure(t, exitUsage)
		if lines := a.lines(); len(lines) > 0 {
			t.Errorf("%s: sent %v", args, lines)
		}
	}
}
