// SPDX-License-Identifier: Apache-2.0

package service

import (
	"regexp"
	"strings"
	"testing"

	"github.com/almanac-cloud/almanac/tests/built"
	"github.com/almanac-cloud/almanac/tests/labtest"
)

// last is the place of the newest change, as a follower keeps it.
var last = regexp.MustCompile(`(?m)^changes +(\d+)$`)

func TestADatabaseMovesToMariaDBAndBackWithItsReservations(t *testing.T) {
	folder := built.NewFolder(t, built.TenHosts)
	s := built.Start(t, folder)
	id, _, exit := s.Almanac(t, "reservation", "create", "training", "--start", "+1h", "--duration", "1h", "--quantity", "2", "-f", "value", "-c", "ID")
	if id = strings.TrimSpace(id); exit != 0 {
		t.Fatalf("create: exit %d", exit)
	}
	shown, _, _ := s.Almanac(t, "reservation", "show", id)
	calendar, _, _ := s.Almanac(t, "calendar")

	server := labtest.Database(t)
	if out, failed := built.Almanacd(t, folder, nil, "db", "copy", "--to", server); !failed || !strings.Contains(out, "another almanacd uses the database") {
		t.Errorf("while almanacd runs: %s", out)
	}
	if out, failed := built.Almanacd(t, folder, nil, "db", "copy", "--to", server, "--dry-run"); failed || !last.MatchString(out) || !strings.Contains(out, "rows would be copied") {
		t.Errorf("a dry run while almanacd runs: %s", out)
	}
	s.Stop(t)

	from := []string(nil) // the embedded database
	for _, to := range []string{server, "sqlite:///back.db"} {
		out, failed := built.Almanacd(t, folder, from, "db", "copy", "--to", to)
		if failed || !last.MatchString(out) || !strings.Contains(out, "set [database] connection to the copy") {
			t.Fatalf("copy to %s: %s", to, out)
		}
		if out, failed := built.Almanacd(t, folder, from, "db", "copy", "--to", to); !failed || !strings.Contains(out, "has rows; name an empty database") {
			t.Errorf("copy once more: %s", out)
		}
		from = []string{"OS_DATABASE__CONNECTION=" + to}
		s := built.Start(t, folder, from...)
		if got, _, _ := s.Almanac(t, "reservation", "show", id); got != shown {
			t.Errorf("at %s the reservation is\n%s\nwant\n%s", to, got, shown)
		}
		if got, _, _ := s.Almanac(t, "calendar"); got != calendar {
			t.Errorf("at %s the calendar is\n%s\nwant\n%s", to, got, calendar)
		}
		name := "extra" + to[:3]
		if _, message, exit := s.Almanac(t, "reservation", "create", name, "--start", "+9h", "--duration", "1h"); exit != 0 {
			t.Errorf("a booking at %s: %s", to, message)
		}
		if _, message, exit := s.Almanac(t, "reservation", "delete", name); exit != 0 {
			t.Errorf("a cancellation at %s: %s", to, message)
		}
		s.Stop(t)
	}
	trail, failed := built.Almanacd(t, folder, from, "db", "trail", id)
	if failed || strings.Count(trail, " create ") != 1 {
		t.Errorf("the trail after two moves: %s", trail)
	}
}

func TestACopyThatCannotBeMadeSaysWhy(t *testing.T) {
	folder := built.NewFolder(t, built.TenHosts)
	if out, failed := built.Almanacd(t, folder, nil, "db", "sync"); failed {
		t.Fatal(out)
	}
	for name, tc := range map[string]struct{ to, want string }{
		"to itself":                {"sqlite:///almanac.db", "--to: is [database] connection itself"},
		"to a database of others":  {"oracle://u:secret@db/almanac", "--to: connection: oracle is not supported"},
		"to a server that is gone": {"mysql+pymysql://u:secret@127.0.0.1:1/almanac", "--to: open the database u@127.0.0.1:1/almanac"},
	} {
		out, failed := built.Almanacd(t, folder, nil, "db", "copy", "--to", tc.to)
		if !failed || !strings.Contains(out, tc.want) || strings.Contains(out, "secret") {
			t.Errorf("%s: %s", name, out)
		}
	}
}
